// The fixtures: pages that may not complain, and visitors, each with a browser profile
// of their own.
import { test as base } from "@playwright/test";

import { Quiet } from "./quiet.js";
import { adminCookie } from "./shop.js";

export { expect } from "@playwright/test";

export const test = base.extend({
  baseURL: async ({}, use) => use(process.env.E2E_URL),

  quiet: [
    async ({}, use) => {
      const quiet = new Quiet();
      await use(quiet);
      quiet.verdict();
    },
    { auto: true },
  ],

  context: async ({ context, quiet, javaScriptEnabled }, use) => {
    quiet.follow(context, javaScriptEnabled);
    await use(context);
  },

  /** `visitor({cookie, …options})`: a page in a new profile, signed in with `cookie`. */
  visitor: async ({ browser, quiet, javaScriptEnabled }, use) => {
    const contexts = [];
    await use(async ({ cookie, ...options } = {}) => {
      const context = await browser.newContext(options);
      contexts.push(context);
      quiet.follow(context, options.javaScriptEnabled ?? javaScriptEnabled);
      if (cookie) await context.addCookies([cookie]);
      return context.newPage();
    });
    for (const context of contexts) await context.close();
  },

  /** A page of the admin's. */
  admin: async ({ visitor }, use) => use(await visitor({ cookie: adminCookie() })),
});

/** Opens a page and waits until its islands are awake. */
export async function open(page, address) {
  await page.goto(address);
  await awake(page);
}

export const awake = (page) => page.locator("html[data-hydrated]").waitFor({ state: "attached" });

export const buyButton = (page) => page.getByTestId("buy");

/** The id of the order whose page is open. */
export async function orderId(page) {
  await page.waitForURL(/\/orders\/\d+$/);
  const shown = (await page.getByTestId("order-id").textContent()).trim();
  if (!page.url().endsWith(`/${shown}`)) throw new Error(`the page ${page.url()} shows the order ${shown}`);
  return shown;
}
