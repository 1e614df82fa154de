// The browser's tests: a real server, the system's Chromium, nothing downloaded.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  globalSetup: "./support/server.js",
  reporter: "list",
  fullyParallel: true,
  forbidOnly: Boolean(process.env.CI),
  // Two browsers beside a server are what two processors can drive with a countdown on time.
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  use: {
    browserName: "chromium",
    // English, and in a zone that is not Beijing's, so that the second clock is shown.
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
      // Root has no sandbox, and a browser in a test calls nobody but the shop.
      args: [
        "--no-sandbox",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-quic",
      ],
    },
  },
});
