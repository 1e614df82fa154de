// The road to this design: in both languages and themes, on every screen, by axe, without JavaScript.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { expect, open, test } from "../support/test.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe has against the page. */
async function complaints(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(", ")}`);
}

const WORDS = {
  en: { locale: "en-GB", link: "How we got here", title: "The road to this design", product: "this shop", passes: "Passes", fails: "Fails" },
  zh: { locale: "zh-CN", link: "设计之路", title: "通往这一设计的路", product: "本店", passes: "通过", fails: "不通过" },
};

for (const [lang, words] of Object.entries(WORDS)) {
  for (const viewport of [{ width: 1280, height: 800 }, { width: 320, height: 568 }]) {
    test(`the road is one link away and shows every way with its audit (${lang}, ${viewport.width} px)`, async ({ visitor }) => {
      const page = await visitor({ viewport, locale: words.locale });
      await open(page, "/");
      await page.getByRole("link", { name: words.link }).click();
      await expect(page).toHaveURL(/\/road$/);
      await expect(page.getByRole("heading", { level: 1 })).toHaveText(words.title);
      const rows = page.getByRole("table").getByRole("row");
      await expect(rows).toHaveCount(19);
      await expect(rows.last()).toContainText(words.product);
      await expect(rows.last().getByRole("cell", { name: words.passes, exact: true })).toBeVisible();
      await expect(rows.nth(1).getByRole("cell", { name: words.fails, exact: true })).toBeVisible();
      const chart = page.locator(".road-chart svg");
      await expect(chart).toBeVisible();
      await expect(chart.locator("rect")).toHaveCount(36);
      const wide = await chart.evaluate((svg) => {
        const { right } = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right > right).map((text) => text.textContent);
      });
      expect(wide).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        expect(await complaints(page), colorScheme).toEqual([]);
      }
    });
  }
}
