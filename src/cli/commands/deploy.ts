/** `longline deploy` and `longline destroy`: a relay on the owner's own Cloudflare account. */
import { join } from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import { ApiError } from "../../errors.ts";
import { packageRoot } from "../../serve/package-root.ts";
import { LOCAL_DATA } from "../connection.ts";
import { DeployDir } from "../deploy/deploy-dir.ts";
import { installedWrangler, Wrangler, type WranglerCommand } from "../deploy/wrangler.ts";
import { askLine } from "../prompt.ts";
import { printJson, type Terminal } from "../terminal.ts";

interface Options {
  name: string;
  wrangler?: string;
  json?: boolean;
}

interface DeployCommandOptions extends Options {
  domain?: string;
  workersDev?: boolean;
  jurisdiction?: string;
  dryRun?: boolean;
}

interface DestroyCommandOptions extends Options {
  yes?: boolean;
}

/** Adds the `deploy` and `destroy` commands to the program. */
export function addDeployCommands(program: Command, terminal: Terminal): void {
  shared(program.command("deploy"))
    .description("put a relay on your Cloudflare account, or bring the one there to this version")
    .option("--domain <host>", "a domain of your account to serve it on (default: an address on workers.dev)", parseDomain)
    .option("--workers-dev", "it is on workers.dev; only needed on a machine that did not make it")
    .addOption(new Option("--jurisdiction <where>", "keep all data there; chosen once").choices(["eu", "us", "fedramp"]))
    .option("--dry-run", "show the steps, change nothing")
    .addHelpText("after", "\nExamples:\n  longline deploy\n  longline deploy --domain relay.example --jurisdiction eu")
    .action(async (options: DeployCommandOptions) => await runDeploy(terminal, options));
  shared(program.command("destroy"))
    .description("remove a relay from your Cloudflare account, with all its data")
    .option("--yes", "do not ask")
    .addHelpText("after", "\nExample:\n  longline destroy --name longline")
    .action(async (options: DestroyCommandOptions) => await runDestroy(terminal, options));
}

function shared(command: Command): Command {
  return command
    .option("--name <name>", "name of the Worker, its database and its namespace", parseName, "longline")
    .option("--wrangler <program>", "the wrangler to use (default: the installed one, else through npx)")
    .option("--json", "print one JSON value on stdout and nothing else");
}

async function runDeploy(terminal: Terminal, options: DeployCommandOptions): Promise<void> {
  if (options.domain !== undefined && options.workersDev === true)
    throw new ApiError("bad_request", "--domain and --workers-dev contradict each other.");
  if (options.dryRun === true) return showSteps(terminal, options);
  const { deploy } = await import("../deploy/deploy.ts");
  const dir = deployDir(terminal, options);
  const { url, ownerToken, setupLink, isUpgrade } = await deploy({
    name: options.name,
    domain: options.domain,
    workersDev: options.workersDev === true,
    jurisdiction: options.jurisdiction,
    wrangler: wranglerOf(terminal, options),
    dir,
    root: packageRoot(),
    step: (text) => terminal.err(`${text} …`),
  });
  if (options.json === true) return printJson(terminal, { url, ownerToken, consoleUrl: `${url}/console`, setupLink });
  terminal.out(`The relay ${isUpgrade ? "is up to date" : "is ready"} at ${url}`);
  terminal.out(`Sign your browser in, once, within the hour:\n  ${setupLink}`);
  terminal.out(`On the device:\n  longline agent --relay ${url}`);
  terminal.out(`Owner commands here:\n  export LONGLINE_RELAY=${url} LONGLINE_OWNER_TOKEN="$(cat '${dir.ownerTokenPath}')"`);
}

/** What a deploy does, in its order; what exists already is kept. */
function showSteps(terminal: Terminal, { name, domain, jurisdiction, json }: DeployCommandOptions): void {
  const where = jurisdiction === undefined ? "" : ` --jurisdiction ${jurisdiction}`;
  const config = join(LOCAL_DATA, "deploy", name, "wrangler.json");
  const steps = [
    ["check the Cloudflare login", "wrangler whoami --json"],
    ["create the D1 database, unless it is there", `wrangler d1 create ${name}${where}`],
    ["create the KV namespace, unless it is there", `wrangler kv namespace create ${name}-oauth${where}`],
    ["bring the database to this version", `wrangler d1 migrations apply ${name} --remote --config ${config}`],
    ["add the owner and the hash of an owner token", `wrangler d1 execute ${name} --remote --yes --config ${config}`],
    ["tell the agents, when this is an upgrade", "POST /api/drain"],
    [
      `deploy the Worker${domain === undefined ? "" : ` on ${domain}`}, at first with a new root key as its secret`,
      `wrangler deploy --config ${config} --keep-vars`,
    ],
    ["wait until it answers, up to 3 minutes", "GET /health"],
    ["make a link that signs a browser in", "POST /api/setup-links"],
  ] as const;
  if (json === true)
    return printJson(
      terminal,
      steps.map(([step, command]) => ({ step, command })),
    );
  for (const [index, [step, command]] of steps.entries()) terminal.out(`${index + 1}. ${step}\n     ${command}`);
}

async function runDestroy(terminal: Terminal, options: DestroyCommandOptions): Promise<void> {
  const { findRemovals } = await import("../deploy/destroy.ts");
  const { name } = options;
  const removals = await findRemovals(wranglerOf(terminal, options), deployDir(terminal, options), name);
  if (removals.length === 0) throw new ApiError("not_found", `There is no relay named ${name} in this Cloudflare account.`);
  terminal.err(`This removes for good:\n${removals.map(({ what }) => `  - ${what}`).join("\n")}`);
  const elsewhere = "This has to be confirmed at a terminal. Pass --yes to do without.";
  if (options.yes !== true && (await askLine(`Type ${name} to remove all of it:`, elsewhere)) !== name)
    throw new ApiError("failed", "Nothing was removed.");
  for (const removal of removals) {
    terminal.err(`Removing ${removal.what} …`);
    await removal.remove();
  }
  if (options.json === true) printJson(terminal, { name, removed: removals.map(({ what }) => what) });
  else terminal.out(`The relay ${name} is gone.`);
}

function deployDir(terminal: Terminal, { name }: Options): DeployDir {
  return new DeployDir(join(terminal.cwd, LOCAL_DATA, "deploy", name));
}

function wranglerOf(terminal: Terminal, { wrangler }: Options): Wrangler {
  const command: WranglerCommand = wrangler === undefined ? installedWrangler() : [wrangler];
  return new Wrangler(command, terminal.cwd, terminal.env);
}

/** What Workers, D1 and KV all accept, and what fits a workers.dev label with room. */
function parseName(value: string): string {
  if (!/^[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?$/.test(value))
    throw new InvalidArgumentError("Use 1 to 50 lower-case letters, digits and dashes.");
  return value;
}

function parseDomain(value: string): string {
  const url = URL.canParse(`https://${value}`) ? new URL(`https://${value}`) : undefined;
  if (url === undefined || url.host !== value || url.port !== "" || !value.includes("."))
    throw new InvalidArgumentError("Give a host name such as relay.example, without https:// and without a path.");
  return value;
}
