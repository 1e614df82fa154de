// Listens to every page of a test and remembers whatever should not have happened: a
// console error or warning (hydration and Content-Security-Policy complain there), an
// exception, a request that failed or was refused.
import { expect } from "@playwright/test";

export class Quiet {
  #complaints = [];
  #refusals = [];
  #exceptions = [];
  #offline = false;

  /** This answer is meant to be refused: part of its address, and the status. */
  refusal(address, status) {
    this.#refusals.push({ address, status });
  }

  /** A page is meant to end in this exception: a part of its text. */
  exception(text) {
    this.#exceptions.push(text);
  }

  /** From here on the network may be cut. */
  offline() {
    this.#offline = true;
  }

  /** Listens to a context; `script` says whether JavaScript is on there. */
  follow(context, script = true) {
    context.on("console", (message) => {
      if (!["error", "warning"].includes(message.type())) return;
      // Without JavaScript nobody uses what was preloaded for it.
      if (!script && message.text().includes("was preloaded using link preload but not used")) return;
      const { url } = message.location();
      // Chromium repeats a refused or lost request on the console.
      const repeated = message.text().startsWith("Failed to load resource");
      if (repeated && (this.#offline || this.#refusals.some(({ address }) => url.includes(address)))) return;
      this.#complaints.push(`console ${message.type()}: ${message.text()} (${url})`);
    });
    context.on("weberror", (error) => {
      const text = String(error.error());
      if (!this.#exceptions.some((meant) => text.includes(meant))) this.#complaints.push(`exception: ${text}`);
    });
    context.on("requestfailed", (request) => {
      const why = request.failure()?.errorText ?? "";
      // A page that is left gives up what it was asking for.
      if (why === "net::ERR_ABORTED" || this.#offline) return;
      // Turned off, JavaScript is blocked by a policy of the browser's own.
      if (!script && why === "csp") return;
      this.#complaints.push(`request failed: ${request.method()} ${request.url()} ${why}`);
    });
    context.on("response", (response) => {
      const status = response.status();
      if (status < 400) return;
      const meant = this.#refusals.some((one) => one.status === status && response.url().includes(one.address));
      if (!meant) this.#complaints.push(`status ${status}: ${response.url()}`);
    });
  }

  verdict() {
    expect(this.#complaints, "what the pages complained about").toEqual([]);
  }
}
