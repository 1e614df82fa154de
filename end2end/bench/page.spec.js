// What a cheap phone needs for a sale's page: bytes over the wire, and how long it takes on a
// processor four times slower and a slow-4G network. Prints a table; the budgets are the issue of
// `script/test`, which looks at bytes: time is measured here and asserted nowhere else.
import { expect, test } from "../support/test.js";
import { newBuyer, newSale, saleUrl } from "../support/shop.js";

const RUNS = Number(process.env.PAGE_RUNS ?? 5);
/** Lighthouse's "slow 4G": 1.6 Mbit/s down, 0.75 Mbit/s up, 150 ms a round trip. */
const SLOW_4G = { offline: false, latency: 150, downloadThroughput: 1_600_000 / 8, uploadThroughput: 750_000 / 8 };
const PROCESSOR = 4;

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Opens the page cold, on the slow phone; bytes by kind, and when it showed and did what. */
async function once(visitor, cookie, address) {
  const page = await visitor({ cookie, viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.emulateNetworkConditions", SLOW_4G);
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: PROCESSOR });
  const bytes = { html: 0, css: 0, js: 0, wasm: 0 };
  const kinds = new Map();
  devtools.on("Network.responseReceived", ({ requestId, response, type }) => kinds.set(requestId, { url: response.url, type }));
  devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const { url, type } = kinds.get(requestId) ?? {};
    if (!url || url.includes("/api/")) return;
    const kind = type === "Document" ? "html" : url.match(/\.(css|js|wasm)$/)?.[1];
    if (kind) bytes[kind] += encodedDataLength;
  });
  await page.addInitScript(() => {
    const seen = (name) => (globalThis[name] ??= performance.now());
    // Frames are drawn only once the style sheet is there: what a frame finds is about to be seen.
    const look = () => {
      if (document.querySelector("[data-testid=countdown]")?.textContent) seen("countdownAt");
      if (document.documentElement && "hydrated" in document.documentElement.dataset) seen("clicksAt");
      if (!globalThis.clicksAt) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.goto(address);
  await page.waitForFunction(() => globalThis.countdownAt && globalThis.clicksAt);
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  const times = await page.evaluate(() => {
    const [{ startTime: painted }] = performance.getEntriesByName("first-contentful-paint");
    return { countdown: Math.max(globalThis.countdownAt, painted), clicks: globalThis.clicksAt };
  });
  await page.context().close();
  return { bytes, times };
}

test("a sale's page on a slow phone", async ({ visitor }) => {
  test.setTimeout(300_000);
  const [sale, buyer] = await Promise.all([newSale({ opensIn: 1_800 }), newBuyer()]);
  const runs = [];
  for (let run = 0; run < RUNS; run++) runs.push(await once(visitor, buyer.cookie, saleUrl(sale)));
  const { bytes } = runs[0];
  const kb = (number) => `${(number / 1000).toFixed(1)} kB`;
  const total = Object.values(bytes).reduce((sum, number) => sum + number, 0);
  const [countdown, clicks] = ["countdown", "clicks"].map((name) => median(runs.map(({ times }) => times[name])));
  const lines = [
    ...Object.entries(bytes).map(([kind, size]) => `${kind.padEnd(34)} ${kb(size).padStart(10)}`),
    `${"all, as transferred".padEnd(34)} ${kb(total).padStart(10)}   (at most 150 kB)`,
    `${`countdown shown (median of ${RUNS})`.padEnd(34)} ${`${countdown.toFixed(0)} ms`.padStart(10)}   (under 1,500 ms)`,
    `${`clicks taken (median of ${RUNS})`.padEnd(34)} ${`${clicks.toFixed(0)} ms`.padStart(10)}   (under 3,000 ms)`,
  ];
  console.log(`\nA sale's page, processor slowed ${PROCESSOR}×, slow 4G (1.6 Mbit/s, 150 ms):\n${lines.join("\n")}\n`);
  expect(total).toBeLessThanOrEqual(150_000);
});
