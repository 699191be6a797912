#!/usr/bin/env node
// Stands for wrangler and a Cloudflare account: records each call in `$STUB_ACCOUNT/calls`, keeps what was made in
// `$STUB_ACCOUNT/account.json`, and runs the SQL in a real SQLite database.
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";

const dir = process.env.STUB_ACCOUNT;
const file = join(dir, "account.json");
const account = existsSync(file)
  ? JSON.parse(readFileSync(file, "utf8"))
  : { isLoggedIn: true, databases: [], namespaces: [], workers: {} };
const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const config = option("--config") === undefined ? undefined : JSON.parse(readFileSync(option("--config"), "utf8"));
appendFileSync(join(dir, "calls"), `${JSON.stringify(args)}\n`);
const save = () => writeFileSync(file, JSON.stringify(account));
const fail = (text) => {
  process.stderr.write(`${text}\n`);
  process.exit(1);
};
const failing = process.env.STUB_FAILS;
if (failing !== undefined && args.join(" ").startsWith(failing)) fail("✘ [ERROR] A request to the Cloudflare API failed. [code: 10000]");

const commands = {
  whoami: () => (account.isLoggedIn ? console.log('{"loggedIn":true}') : fail('{"loggedIn":false}')),
  "secret list": () => {
    const worker = account.workers[option("--name")];
    if (worker === undefined) fail("✘ [ERROR] This Worker does not exist on your account. [code: 10007]");
    console.log(JSON.stringify(worker.secrets.map((name) => ({ name, type: "secret_text" }))));
  },
  "d1 list": () => console.log(JSON.stringify(account.databases)),
  "d1 create": () => account.databases.push({ name: args[2], uuid: `uuid-of-${args[2]}` }),
  "d1 delete": () => void (account.databases = account.databases.filter(({ name }) => name !== args[2])),
  "d1 migrations": () => {
    const { migrations_dir } = config.d1_databases[0];
    const from = resolve(dirname(option("--config")), migrations_dir);
    const database = new DatabaseSync(join(dir, "d1.sqlite"));
    if (database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'members'").get() !== undefined) return;
    for (const name of readdirSync(from).sort()) database.exec(readFileSync(join(from, name), "utf8"));
  },
  "d1 execute": () => {
    const database = new DatabaseSync(join(dir, "d1.sqlite"));
    if (args.includes("--json")) console.log(JSON.stringify([{ results: database.prepare(option("--command")).all(), success: true }]));
    else database.exec(option("--command"));
  },
  "kv namespace": () => {
    if (args[2] === "list") console.log(JSON.stringify(account.namespaces));
    if (args[2] === "create") account.namespaces.push({ id: `id-of-${args[3]}`, title: args[3] });
    if (args[2] === "delete") account.namespaces = account.namespaces.filter(({ id }) => id !== option("--namespace-id"));
  },
  deploy: () => {
    const secrets = option("--secrets-file") === undefined ? {} : JSON.parse(readFileSync(option("--secrets-file"), "utf8"));
    const before = account.workers[config.name];
    account.workers[config.name] = {
      vars: { ...before?.vars, ...config.vars },
      secrets: [...(before?.secrets ?? []), ...Object.keys(secrets)],
      config,
    };
    const targets = [process.env.STUB_ADDRESS];
    appendFileSync(
      process.env.WRANGLER_OUTPUT_FILE_PATH,
      `${JSON.stringify({ type: "wrangler-session" })}\n${JSON.stringify({ type: "deploy", targets })}\n`,
    );
  },
  delete: () => delete account.workers[option("--name")],
};
const run = commands[args.slice(0, 2).join(" ")] ?? commands[args[0]];
if (run === undefined) fail(`unknown command: ${args.join(" ")}`);
run();
save();
