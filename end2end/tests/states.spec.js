// Every state that a buyer can meet: its words in both languages, an icon beside them, and
// nothing that axe finds, on a desktop and on a phone, light and dark.
import { expect, open, buyButton, orderId, test } from "../support/test.js";
import { asAdmin, buy, newBuyer, newSale, post, saleUrl } from "../support/shop.js";
import { holdRows } from "../support/services.js";
import { complaints } from "../support/axe.js";

const WORDS = {
  en: {
    scheduled: "Opens soon", open: "Open", paused: "Paused", ended: "Ended", soldOut: "Sold out", gone: "Sold out for good",
    notLoaded: /Nothing was ordered; try again/, signIn: /Sign in before it opens/, lastMinute: /Final minute/, loading: /still loading/,
    sending: "Sending…", soldOutAnswer: /if one comes back, this page will say so/, wait: /Your press is kept and sent again in \d+ s/,
    tooMany: /Asking again in \d+ s/, away: /does not answer right now/, offline: /No connection\. You see the sale as it was at/,
    request: /Request 0af7651916cd43dd8448eb211c80319c/, signedOut: /not signed in any more/, updated: /was updated meanwhile/,
    goneSale: /not there any more/, nothing: "Nothing here", queued: "Accepted, queued", confirmed: "Confirmed", copy: "Copy", copied: "Copied",
    held: /you already have one/, notLive: /could not be loaded/,
  },
  zh: {
    scheduled: "即将开抢", open: "抢购中", paused: "已暂停", ended: "已结束", soldOut: "已抢完", gone: "全部抢完",
    notLoaded: /活动还没准备好/, signIn: /请在开抢前登录/, lastMinute: /最后一分钟/, loading: /页面仍在加载/,
    sending: "提交中…", soldOutAnswer: /如有名额退回/, wait: /您的点击已保留，\d+ 秒后/,
    tooMany: /\d+ 秒后自动刷新/, away: /商店暂时没有响应/, offline: /网络已断开。您看到的是北京时间/,
    request: /0af7651916cd43dd8448eb211c80319c/, signedOut: /登录已失效/, updated: /商店刚刚更新过/,
    goneSale: /这个活动已经不存在/, nothing: /.+/, queued: "已受理，排队中", confirmed: "抢购成功", copy: "复制", copied: "已复制",
    held: /您已抢到/, notLive: /没能加载/,
  },
};
const LOCALES = { en: "en-GB", zh: "zh-CN" };
const SCREENS = {
  desktop: { viewport: { width: 1200, height: 800 } },
  phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true },
};
const state = (page) => page.getByTestId("state");
const trouble = (page) => page.getByTestId("trouble");
const answer = (page) => page.getByTestId("answer");

/** Nothing is told by colour alone: an icon and words. And axe has nothing against it, light and dark. */
async function looksRight(page, part) {
  await expect(part.locator("svg.icon").first()).toBeVisible();
  expect((await part.innerText()).trim()).not.toBe("");
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    expect(await complaints(page)).toEqual([]);
  }
}

/** The answers that `/api/sale` gives from now on. */
const answers = (page, status, body, headers = {}) =>
  page.route("**/api/sale?*", (route) => route.fulfill({ status, headers, contentType: "application/json", body }));
const refusal = (code) => JSON.stringify({ code, message: "" });

for (const [language, words] of Object.entries(WORDS)) {
  for (const [screen, size] of Object.entries(SCREENS)) {
    const options = { ...size, locale: LOCALES[language] };

    test(`each state of a sale has its words (${language}, ${screen})`, async ({ visitor, quiet }) => {
      quiet.refusal("/sales/999999", 404);
      quiet.refusal("/orders/", 404);
      const buyer = await newBuyer();
      const [scheduled, soon, opened, one, last, paused, ended] = await Promise.all([
        newSale({ opensIn: 1_800 }),
        newSale({ opensIn: 50 }),
        newSale(),
        newSale({ stock: 1 }),
        newSale({ stock: 1 }),
        newSale(),
        newSale(),
      ]);
      const other = await newBuyer();
      await Promise.all([
        buy(other, one),
        buy(other, last),
        asAdmin("/api/admin/pause_sale", { voucher_id: paused.voucher_id }),
        asAdmin("/api/admin/end_sale", { voucher_id: ended.voucher_id }),
      ]);
      await asAdmin("/api/admin/end_sale", { voucher_id: last.voucher_id });
      const page = await visitor({ ...options, cookie: buyer.cookie });
      for (const [sale, word] of [
        [scheduled, words.scheduled],
        [soon, words.scheduled],
        [opened, words.open],
        [one, words.soldOut],
        [last, words.gone],
        [paused, words.paused],
        [ended, words.ended],
      ]) {
        await open(page, saleUrl(sale));
        await expect(state(page)).toHaveText(word);
        await looksRight(page, state(page));
        if (sale === soon) await expect(page.locator(".countdown-label")).toHaveText(words.lastMinute);
      }
      // Nothing is left, and for now: the press says so.
      await open(page, saleUrl(one));
      await buyButton(page).click();
      await expect(answer(page)).toHaveText(words.soldOutAnswer);
      await looksRight(page, answer(page));
      await open(page, `${saleUrl(opened)}?outcome=not_loaded`);
      await expect(answer(page)).toHaveText(words.notLoaded);
      await looksRight(page, answer(page));
      // The list has the same words.
      await page.goto("/");
      const card = (sale) => page.getByRole("listitem").filter({ hasText: sale.title }).locator(".badge");
      await expect(card(soon)).toHaveText(words.scheduled);
      await expect(card(last)).toHaveText(words.gone);
      await expect(card(paused)).toHaveText(words.paused);
      // What is not there, and what is somebody else's.
      for (const address of ["/sales/999999", "/orders/1"]) {
        expect((await page.goto(address)).status()).toBe(404);
        await expect(page.getByRole("heading", { level: 1 })).toHaveText(words.nothing);
        expect(await complaints(page)).toEqual([]);
      }
      const stranger = await visitor(options);
      await open(stranger, saleUrl(opened));
      const note = stranger.locator(".note", { hasText: words.signIn });
      await looksRight(stranger, note);
    });

    test(`each state of a press has its words (${language}, ${screen})`, async ({ visitor, quiet }) => {
      for (const status of [429, 500, 503]) quiet.refusal("/api/buy", status);
      const [sale, buyer] = await Promise.all([newSale(), newBuyer()]);
      const page = await visitor({ ...options, cookie: buyer.cookie });

      await test.step("before the program has arrived", async () => {
        let arrive;
        const held = new Promise((resolve) => (arrive = resolve));
        await page.route("**/shop_bg.wasm", async (route) => (await held, route.continue()));
        await page.goto(saleUrl(sale));
        await expect(page.getByTestId("loading")).toHaveText(words.loading);
        await expect(page.getByTestId("loading")).toBeVisible();
        arrive();
        await expect(page.getByTestId("loading")).toBeHidden();
        await page.unroute("**/shop_bg.wasm");
      });

      await test.step("without the program the page says so, and the button is a plain form", async () => {
        quiet.refusal("/shop_bg.wasm", 404);
        quiet.exception("failed to fetch Wasm");
        const [another, other] = await Promise.all([newSale(), newBuyer()]);
        const tab = await visitor({ ...options, cookie: other.cookie });
        await tab.route("**/shop_bg.wasm", (route) => route.fulfill({ status: 404, contentType: "text/plain", body: "" }));
        await tab.goto(saleUrl(another));
        await expect(tab.locator(".loading-failed")).toHaveText(words.notLive);
        await expect(tab.locator(".loading-failed")).toBeVisible();
        await looksRight(tab, tab.getByTestId("loading"));
        await buyButton(tab).click();
        await orderId(tab);
      });

      await test.step("a fault is told with its number", async () => {
        const headers = { "x-request-id": "0af7651916cd43dd8448eb211c80319c" };
        const fault = { status: 500, headers, contentType: "application/json", body: refusal("internal") };
        await page.route("**/api/buy", (route) => route.fulfill(fault), { times: 1 });
        await buyButton(page).click();
        await expect(answer(page)).toHaveText(words.request);
        await looksRight(page, answer(page));
      });

      await test.step("under way, asked to wait, and sent again by itself", async () => {
        let letGo;
        const held = new Promise((resolve) => (letGo = resolve));
        const full = (status, code) => ({ status, headers: { "retry-after": "2" }, contentType: "application/json", body: refusal(code) });
        await page.route("**/api/buy", (route) => route.fulfill(full(503, "unavailable")), { times: 1 });
        await page.route("**/api/buy", async (route) => (await held, route.fulfill(full(429, "too_many"))), { times: 1 });
        await buyButton(page).click();
        await expect(buyButton(page)).toHaveText(words.sending);
        letGo();
        await expect(answer(page)).toHaveText(words.wait);
        await looksRight(page, answer(page));
        const order = await orderId(page);
        await expect(state(page)).toHaveText(words.confirmed);
        await looksRight(page, state(page));
        // Whoever has one already is told so before a press, and gets that one.
        await open(page, saleUrl(sale));
        const had = page.getByTestId("held");
        await expect(had).toHaveText(words.held);
        await looksRight(page, had);
        await expect(had.getByRole("link")).toHaveAttribute("href", `/orders/${order}`);
        await buyButton(page).click();
        expect(await orderId(page)).toBe(order);
      });

      await test.step("the order's number can be copied", async () => {
        await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
        const copy = page.getByTestId("copy");
        await expect(copy).toHaveText(words.copy);
        const { height } = await copy.boundingBox();
        expect(height).toBeGreaterThanOrEqual(44);
        await copy.click();
        await expect(copy).toHaveText(words.copied);
        expect(await page.evaluate(() => navigator.clipboard.readText())).toBe((await page.getByTestId("order-id").innerText()).trim());
      });
    });

    test(`a page that can't show what is says why (${language}, ${screen})`, async ({ visitor, quiet }) => {
      for (const status of [404, 429, 503]) quiet.refusal("/api/sale", status);
      quiet.offline();
      const [sale, buyer] = await Promise.all([newSale(), newBuyer()]);
      const page = await visitor({ ...options, cookie: buyer.cookie });
      await open(page, saleUrl(sale));
      const says = async (name, text) => {
        await expect(trouble(page)).toHaveAttribute("data-trouble", name);
        await expect(trouble(page)).toHaveText(text);
        await looksRight(page, trouble(page));
      };
      const fine = async () => {
        await page.unroute("**/api/sale?*");
        await expect(trouble(page)).toBeHidden();
      };
      await answers(page, 429, refusal("too_many"), { "retry-after": "2" });
      await says("too_many", words.tooMany);
      await fine();
      await answers(page, 503, refusal("unavailable"), { "retry-after": "2" });
      await says("unavailable", words.away);
      await fine();
      await page.context().setOffline(true);
      await says("offline", words.offline);
      await page.context().setOffline(false);
      await fine();

      await test.step("signed out elsewhere, it says so before the opening", async () => {
        const later = await newSale({ opensIn: 1_800 });
        const other = await newBuyer();
        const tab = await visitor({ ...options, cookie: other.cookie });
        await open(tab, saleUrl(later));
        await post("/api/logout", {}, other.cookie);
        const note = tab.getByTestId("signed-out");
        await expect(async () => {
          // Somebody looks at the tab again.
          await tab.evaluate(() => document.dispatchEvent(new Event("visibilitychange", { bubbles: true })));
          await expect(note).toBeVisible({ timeout: 300 });
        }).toPass();
        await expect(note).toHaveText(words.signedOut);
        await looksRight(tab, note);
        await note.getByRole("link").click();
        await expect(tab).toHaveURL(`/login?next=${saleUrl(later)}`);
      });

      await test.step("a newer shop, or a sale that is gone", async () => {
        await answers(page, 200, "<!DOCTYPE html>");
        await says("updated", words.updated);
        await page.unroute("**/api/sale?*");
        await trouble(page).getByRole("link").click();
        await page.waitForLoadState();
        await open(page, saleUrl(sale));
        await answers(page, 404, refusal("not_found"));
        await says("gone", words.goneSale);
        await trouble(page).getByRole("link").click();
        await expect(page).toHaveURL("/");
      });
    });
  }
}

test("an order that takes its time says that its place is safe", async ({ visitor }) => {
  const [sale, ...buyers] = await Promise.all([newSale(), newBuyer(), newBuyer()]);
  const release = await holdRows(`select 1 from voucher where voucher_id = ${sale.voucher_id}`);
  try {
    for (const [language, buyer] of [["en", buyers[0]], ["zh", buyers[1]]]) {
      const page = await visitor({ locale: LOCALES[language], cookie: buyer.cookie });
      await open(page, saleUrl(sale));
      await buyButton(page).click();
      await orderId(page);
      await expect(state(page)).toHaveText(WORDS[language].queued);
      await looksRight(page, state(page));
      buyer.page = page;
    }
  } finally {
    await release();
  }
  await expect(state(buyers[0].page)).toHaveText(WORDS.en.confirmed);
  await expect(state(buyers[1].page)).toHaveText(WORDS.zh.confirmed);
});

test("a tab that was frozen through the opening is right within a second of waking", async ({ visitor }) => {
  const sale = await newSale({ opensIn: 6 });
  const page = await visitor({ cookie: (await newBuyer()).cookie });
  await open(page, saleUrl(sale));
  await expect(buyButton(page)).toBeDisabled();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Page.setWebLifecycleState", { state: "frozen" });
  await expect.poll(() => Date.now(), { timeout: 20_000 }).toBeGreaterThan(sale.begin_ms + 1_000);
  await devtools.send("Page.setWebLifecycleState", { state: "active" });
  await expect(buyButton(page)).toBeEnabled();
  await buyButton(page).click();
  await orderId(page);
});

test("after ten minutes in which the device's clocks stood still the countdown is right", async ({ visitor }) => {
  const sale = await newSale({ opensIn: 3_000 });
  const page = await visitor({ cookie: (await newBuyer()).cookie });
  await page.addInitScript(() => {
    const real = performance.now.bind(performance);
    let slept = 0;
    performance.now = () => real() - slept;
    globalThis.sleepFor = (ms) => {
      slept += ms;
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    };
  });
  await open(page, saleUrl(sale));
  const shown = async () => {
    const [minutes, seconds] = (await page.getByTestId("countdown").textContent()).split(":").map(Number);
    return (minutes * 60 + seconds) * 1000 - (sale.begin_ms - Date.now());
  };
  await expect.poll(async () => Math.abs(await shown())).toBeLessThan(1_500);
  await page.evaluate(() => sleepFor(600_000));
  // It never goes back, so what it shows has to move on to be worth anything.
  const before = await page.getByTestId("countdown").textContent();
  await expect(async () => {
    expect(await page.getByTestId("countdown").textContent()).not.toBe(before);
    expect(Math.abs(await shown())).toBeLessThan(1_500);
  }).toPass({ timeout: 15_000 });
});
