// Loaded into an agent by NODE_OPTIONS: names under .test are looked up in the file DEVICE_HOSTS, anew each time, as a
// DHCP server's names are. Each line is an address and a name.
const dns = require("node:dns");
const { readFileSync } = require("node:fs");

const system = dns.lookup;
dns.lookup = function lookup(name, options, callback) {
  const done = typeof options === "function" ? options : callback;
  if (!name.endsWith(".test")) {
    system.call(dns, name, options, callback);
    return;
  }
  const lines = readFileSync(process.env.DEVICE_HOSTS, "utf8").split("\n");
  const address = lines.map((line) => line.split(" ")).find(([, known]) => known === name)?.[0];
  const isAll = typeof options === "object" && options.all === true;
  setImmediate(() => {
    if (address === undefined) done(Object.assign(new Error(`no address for ${name}`), { code: "ENOTFOUND" }));
    else if (isAll) done(null, [{ address, family: 4 }]);
    else done(null, address, 4);
  });
};
