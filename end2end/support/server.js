// Global setup: one real server for all tests, with a database and a key prefix of its
// own; the function it returns takes everything away again.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath } from "node:url";

import { ROOT, databaseUrl, redis, services, sql } from "./services.js";
import { post } from "./shop.js";

const LOG = fileURLToPath(new URL("../server.log", import.meta.url));
const ADMIN = "admin";

export default async function start() {
  const binary = needed(
    process.env.SECKILL_SERVER_BIN ?? path.join(process.env.CARGO_TARGET_DIR ?? path.join(ROOT, "target"), "debug/seckill-server"),
    "cargo build -p server",
  );
  const dist = process.env.SECKILL_DIST ?? path.join(ROOT, "dist");
  const current = fs.readFileSync(needed(path.join(dist, "current"), "script/bundle"), "utf8").trim();
  needed(path.join(dist, "pkg", current, "shop_bg.wasm"), "script/bundle");

  const tag = randomBytes(6).toString("hex");
  const known = services();
  const database = `seckill_e2e_${tag}`;
  const password = randomBytes(12).toString("hex");
  Object.assign(process.env, {
    E2E_DATABASE_URL: databaseUrl(known.database, database),
    E2E_PREFIX: `e2e_${tag}`,
    E2E_ADMIN: ADMIN,
    E2E_ADMIN_PASSWORD: password,
  });
  // What is set for a shop that somebody runs here must not reach this one.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SECKILL_") && name !== "SESSION_REDIS_URL");
  const env = {
    ...Object.fromEntries(inherited),
    DATABASE_URL: process.env.E2E_DATABASE_URL,
    REDIS_URL: known.redis,
    SECKILL_PREFIX: process.env.E2E_PREFIX,
    SECKILL_DIST: dist,
    SECKILL_ADDR: "127.0.0.1:0",
    SECKILL_ADMIN_PASSWORD: password,
  };

  const undo = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    await sql(`create database ${database}`, known.database);
    undo.push(() => sql(`drop database ${database} with (force)`, known.database));
    await command(binary, ["migrate"], env);
    await command(binary, ["create-admin", ADMIN], env);
    undo.push(forgetKeys);
    const server = await serve(binary, env);
    undo.push(server.stop);
    process.env.E2E_URL = server.origin;
    const { cookie } = await post("/api/login", { username: ADMIN, password });
    process.env.E2E_ADMIN_COOKIE = JSON.stringify(cookie);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/** `file`, which has to be there; `madeBy` makes it. */
function needed(file, madeBy) {
  if (!fs.existsSync(file)) throw new Error(`${file} is missing: run ${madeBy}`);
  return file;
}

function command(binary, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, { env, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    child.once("error", reject);
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${args[0]} ended with ${code}: ${said}`))));
  });
}

/** Starts the server; it is there when it names its address and says that it is ready. */
async function serve(binary, env) {
  const log = fs.createWriteStream(LOG);
  const child = spawn(binary, ["serve"], { env, cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
  let panicked = false;
  const address = await new Promise((resolve, reject) => {
    readline.createInterface({ input: child.stderr }).on("line", (line) => {
      log.write(`${line}\n`);
      panicked ||= line.includes("panicked at");
      if (line.includes('"message":"serving"')) resolve(JSON.parse(line).address);
    });
    child.once("error", reject);
    ended.then((code) => reject(new Error(`the server ended with ${code}, see ${LOG}`)));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    const code = await ended;
    log.end();
    if (code !== 0 || panicked) throw new Error(`the server ${panicked ? "panicked" : `ended with ${code}`}, see ${LOG}`);
  };
  const origin = `http://${address}`;
  const deadline = Date.now() + 30_000;
  while (!(await fetch(`${origin}/readyz`)).ok) {
    if (Date.now() > deadline) {
      await stop();
      throw new Error(`the server is not ready after 30 s, see ${LOG}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { origin, stop };
}

async function forgetKeys() {
  const keys = (await redis("--scan", "--pattern", `${process.env.E2E_PREFIX}:*`)).split("\n").filter(Boolean);
  while (keys.length) await redis("unlink", ...keys.splice(0, 500));
}
