// Two languages and two themes.
import { expect, open, test } from "../support/test.js";
import { newSale, saleUrl } from "../support/shop.js";

/** The page as it leaves the server. */
async function raw(address, headers = {}) {
  const answer = await fetch(process.env.E2E_URL + address, { headers: { accept: "text/html", ...headers } });
  return answer.text();
}

test("the first byte of HTML is in the language of the browser, or of the person's choice", async () => {
  expect(await raw("/", { "accept-language": "en-GB,en;q=0.9" })).toMatch(/^<!DOCTYPE html><html lang="en"/);
  expect(await raw("/", { "accept-language": "zh-CN,zh;q=0.9,en;q=0.5" })).toMatch(/^<!DOCTYPE html><html lang="zh-CN"/);
  expect(await raw("/", { "accept-language": "en", cookie: "lang=zh" })).toMatch(/^<!DOCTYPE html><html lang="zh-CN"/);
  expect(await raw("/", { cookie: "theme=dark" })).toMatch(/^<!DOCTYPE html><html [^>]*data-theme="dark"/);
});

test("the language is switched on the page one is on, and remembered", async ({ page }) => {
  const sale = await newSale();
  await open(page, saleUrl(sale));
  await expect(page.getByTestId("buy")).toHaveText("Buy now");
  await page.getByRole("button", { name: "中文" }).click();
  await expect(page).toHaveURL(saleUrl(sale));
  await expect(page.locator("html")).toHaveAttribute("lang", "zh-CN");
  await expect(page.getByTestId("buy")).toHaveText("立即抢购");
  await expect(page.getByTestId("state")).toHaveText("抢购中");
  await page.goto("/login");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("登录");
  await page.getByRole("button", { name: "English" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Sign in");
});

test("the theme follows the device until it is chosen, and is then remembered", async ({ visitor }) => {
  const page = await visitor({ colorScheme: "dark" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await open(page, "/");
  const dark = await ground();
  await page.emulateMedia({ colorScheme: "light" });
  const light = await ground();
  expect(light).not.toBe(dark);
  await page.getByRole("button", { name: "Dark" }).click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  expect(await ground()).toBe(dark);
  await expect(page.getByRole("button", { name: "Dark" })).toHaveAttribute("aria-pressed", "true");
  await page.goto("/login");
  expect(await ground()).toBe(dark);
  await page.getByRole("button", { name: "Light" }).click();
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await ground()).toBe(light);
});
