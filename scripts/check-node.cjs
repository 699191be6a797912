// Says in one line that Node is too old, before anything that an old Node cannot even parse is loaded.
// Written for any Node since version 4.
"use strict";

// 22.18 is the first release of its line that runs TypeScript files by itself; 23.6 that of the next.
var MINIMUM = [22, 18];

function isTooOld(version) {
  var parts = version.split(".").map(Number);
  if (parts[0] === 23) return parts[1] < 6;
  return parts[0] < MINIMUM[0] || (parts[0] === MINIMUM[0] && parts[1] < MINIMUM[1]);
}

function checkNode(version) {
  if (!isTooOld(version)) return;
  console.error(
    "longline: this is Node " +
      version +
      ", and Longline needs " +
      MINIMUM.join(".") +
      " or newer. " +
      "In a checkout `npm ci` brings one for the npm scripts (not with --ignore-scripts); otherwise install it from https://nodejs.org.",
  );
  process.exit(1);
}

module.exports = { checkNode: checkNode, isTooOld: isTooOld };
if (require.main === module) checkNode(process.versions.node);
