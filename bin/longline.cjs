#!/usr/bin/env node
// The installed command: checks Node, then runs the build, or the source in a checkout. Parsed by any old Node.
"use strict";

var fs = require("fs");
var path = require("path");
var url = require("url");

require("../scripts/check-node.cjs").checkNode(process.versions.node);

var source = path.join(__dirname, "../src/cli/main.ts");
var built = path.join(__dirname, "../dist/cli.js");
// Node runs TypeScript outside node_modules only.
var inModules = __dirname.split(path.sep).indexOf("node_modules") >= 0;

import(url.pathToFileURL(!inModules && fs.existsSync(source) ? source : built).href).catch(function (error) {
  console.error("longline: cannot start: " + error.message);
  process.exit(1);
});
