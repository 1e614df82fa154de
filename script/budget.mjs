// Whether the buyer's page stays within its budget: what the browser loads for it, compressed
// with Brotli as it is served, and a reserve for the page's HTML, whose real size the browser's
// tests look at. Prints a line per file; exit code 1 when it is outgrown.
//
//   node script/budget.mjs [dist]
import fs from "node:fs";
import path from "node:path";

const BUDGET = 150_000;
const HTML = 16_000;
const dist = process.argv[2] ?? "dist";
const folder = path.join(dist, "pkg", fs.readFileSync(path.join(dist, "current"), "utf8").trim());
const size = (name) => fs.statSync(path.join(folder, name)).size;

let total = HTML;
for (const name of ["shop_bg.wasm", "shop.js", "style.css"]) {
  const sent = size(`${name}.br`);
  total += sent;
  console.log(`${name.padEnd(16)} ${(size(name) / 1000).toFixed(1).padStart(7)} kB  ${(sent / 1000).toFixed(1).padStart(7)} kB with Brotli`);
}
console.log(`${"HTML, at most".padEnd(16)} ${"".padStart(10)} ${(HTML / 1000).toFixed(1).padStart(8)} kB`);
console.log(`${"the buyer's page".padEnd(16)} ${"".padStart(10)} ${(total / 1000).toFixed(1).padStart(8)} kB of ${BUDGET / 1000} kB`);
if (total > BUDGET) {
  console.error("the buyer's page has outgrown its budget");
  process.exit(1);
}
