// PostgreSQL and Redis of the run: where they are, and a word with each by its own
// command line client.
import { execFile, execFileSync, spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The project's folder. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What the environment names, else what `script/services env` prints. */
export function services() {
  let { DATABASE_URL: database, REDIS_URL: redis } = process.env;
  if (!database || !redis) {
    const told = execFileSync(path.join(ROOT, "script/services"), ["env"], { encoding: "utf8" });
    database ??= told.match(/^DATABASE_URL=(.*)$/m)?.[1];
    redis ??= told.match(/^REDIS_URL=(.*)$/m)?.[1];
  }
  return { database, redis };
}

/** The same server, another database. */
export function databaseUrl(url, name) {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}

/** One statement; what it returned, unaligned. */
export async function sql(statement, url = process.env.E2E_DATABASE_URL) {
  const { stdout } = await run("psql", ["-XAtqw", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]);
  return stdout.trim();
}

/** Holds the rows that `query` selects until the returned function is called. */
export async function holdRows(query) {
  const client = spawn("psql", ["-XAtqw", "-d", process.env.E2E_DATABASE_URL], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => client.once("exit", resolve));
  client.stdin.write(`begin;\n${query} for update;\n\\echo held\n`);
  await new Promise((resolve, reject) => {
    let said = "";
    client.stdout.on("data", (text) => {
      said += text;
      if (said.includes("held")) resolve();
    });
    client.once("exit", () => reject(new Error(`psql did not hold the rows: ${said}`)));
  });
  return async () => {
    client.stdin.end("rollback;\n");
    await ended;
  };
}

/** One command to Redis; its answer as `redis-cli` prints it. */
export async function redis(...command) {
  const { stdout } = await run("redis-cli", ["-u", services().redis, ...command]);
  return stdout.trim();
}

/** The name of a key of lane 0. */
export const laneKey = (name) => `${process.env.E2E_PREFIX}:{0}:${name}`;
