// Entries that could not be sent are kept in the browser, shown, and sent when the server answers again.
"use strict";
const edrbo = {
  key() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  },
  by() {
    return localStorage.getItem("edrbo-by") || undefined;
  },
  token: () => document.querySelector('meta[name="x-edrbo"]'),

  // Sends JSON; the answer is {ok, status, body}, or {ok: false, status: 0} when nobody answered.
  async post(url, body, again = true) {
    let response;
    try {
      response = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Edrbo": this.token().content },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout ? AbortSignal.timeout(20000) : undefined,
      });
    } catch {
      this.online(false);
      return { ok: false, status: 0, body: {} };
    }
    this.answered(response.status);
    if (response.status === 403 && again && (await this.refresh())) return this.post(url, body, false);
    let answer = {};
    try {
      answer = await response.json();
    } catch {
      answer = { title: `the server answered ${response.status}` };
    }
    return { ok: response.ok, status: response.status, body: answer };
  },

  // A server that was started again wants a new value from us.
  async refresh() {
    try {
      const response = await fetch("/api/v1/session");
      if (!response.ok) return false;
      this.token().content = (await response.json())["x-edrbo"];
      return true;
    } catch {
      return false;
    }
  },

  online(yes) {
    this.line(yes ? "" : "no connection");
  },

  // A page that was left open while the server was started again, with another address.
  answered(status) {
    this.line(status === 401 ? "this page is old: open the address that edrbo serve printed last" : "");
    this.old = status === 401 ? Date.now() : 0;
  },

  // An old page asks now and then only, in case its device has got the new address meanwhile.
  waits() {
    return Boolean(this.old) && Date.now() - this.old < 10000;
  },

  line(trouble) {
    const state = document.getElementById("line");
    const words = trouble || "connected";
    if (!state || state.textContent === words) return;
    state.classList.toggle("off", Boolean(trouble));
    state.textContent = words;
    if (!trouble) queue.send();
  },

  // What the next page says: what was stored under `ref`, to be undone, and what is odd about it.
  say(words, { ref, warnings } = {}) {
    sessionStorage.setItem("edrbo-said", JSON.stringify({ words, ref, warnings }));
  },
};

const queue = {
  busy: false,
  name: "edrbo-queue",
  read() {
    try {
      return JSON.parse(localStorage.getItem(this.name)) || [];
    } catch {
      return [];
    }
  },
  write(entries) {
    localStorage.setItem(this.name, JSON.stringify(entries));
    this.show();
  },
  add(entry) {
    if (!this.read().some((other) => other.body.key === entry.body.key)) this.write([...this.read(), entry]);
  },
  drop(key) {
    this.write(this.read().filter((entry) => entry.body.key !== key));
  },
  async send() {
    if (this.busy) return;
    this.busy = true;
    try {
      for (const entry of this.read().filter((one) => !one.refused)) {
        const waited = Math.max(0, (Date.now() - entry.typed) / 1000);
        const answer = await edrbo.post(entry.url, { ...entry.body, waited });
        if (answer.ok) {
          this.drop(entry.body.key);
          edrbo.say(`Sent now: ${answer.body.words || entry.words}`, answer.body);
          const form = document.querySelector(`form[data-queued="${entry.body.key}"]`);
          if (form) location.href = form.dataset.after; // what it says of waiting is not true any more
          else showSaid();
        } else if (answer.status === 0 || answer.status >= 500 || answer.status === 429 || answer.status === 401) {
          break; // not the entry's fault: later
        } else {
          const words = [answer.body.title, answer.body.detail].filter(Boolean).join("; ");
          this.write(this.read().map((one) => (one.body.key === entry.body.key ? { ...one, refused: words } : one)));
        }
      }
    } finally {
      this.busy = false;
    }
  },
  show() {
    const place = document.getElementById("waiting");
    const entries = this.read();
    place.hidden = !entries.length;
    place.replaceChildren(
      ...entries.map((entry) => {
        const line = document.createElement("div");
        const words = document.createElement("span");
        words.textContent = entry.refused
          ? `Not stored: ${entry.words}. ${entry.refused}`
          : `Kept on this device, sent as soon as it can be: ${entry.words}`;
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = "Discard";
        button.addEventListener("click", () => {
          if (confirm(`Discard the entry: ${entry.words}?`)) this.drop(entry.body.key);
        });
        line.classList.toggle("refused", Boolean(entry.refused));
        line.append(words, button);
        return line;
      }),
    );
  },
};

function showSaid() {
  const place = document.getElementById("said");
  const said = JSON.parse(sessionStorage.getItem("edrbo-said") || "null");
  sessionStorage.removeItem("edrbo-said");
  if (!said) return;
  const line = document.createElement("div");
  const words = document.createElement("span");
  words.textContent = said.words;
  line.append(words);
  if (said.ref) {
    const undo = document.createElement("button");
    undo.type = "button";
    undo.id = "undo";
    undo.textContent = "Undo";
    undo.dataset.undo = said.ref;
    line.append(undo);
  }
  const odd = (said.warnings || []).map((text) => {
    const one = document.createElement("div");
    one.className = "odd";
    one.textContent = text[0].toUpperCase() + text.slice(1) + (text.endsWith("?") ? "" : ".");
    return one;
  });
  place.replaceChildren(line, ...odd);
  place.hidden = false;
}
