// Forms become JSON for the API; numbers are looked at while they are typed; sliders, names, the list of runs.
"use strict";
(() => {
  // The number that a text begins with, for the range beside a field. What a text means is for the server to say.
  const number = (text) => {
    const plain = text.trim().replace("\u2212", "-").replace(/^([+-]?\d*),(\d)/, "$1.$2");
    const found = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?/i.exec(plain);
    return found ? Number(found[0]) : NaN;
  };

  let asking = 0; // a timer: what is typed is looked at when the typing stops

  // ---- what is typed

  function look(input) {
    const help = document.getElementById(`${input.id}-help`);
    const value = input.value.trim() ? number(input.value) : null;
    const { low, high } = input.dataset;
    const wrong = value !== null && !Number.isFinite(value);
    const outside = !wrong && value !== null && ((low && value < Number(low)) || (high && value > Number(high)));
    input.classList.toggle("amber", Boolean(outside));
    input.classList.toggle("red", wrong);
    input.setAttribute("aria-invalid", String(wrong));
    let said = help && help.querySelector(".field-said");
    const words = wrong ? "this is not a number" : outside ? "outside of its range; it is kept as it is" : "";
    if (words && help && !said) {
      said = document.createElement("span");
      said.className = "field-said";
      help.append(said);
    }
    if (said) words ? (said.textContent = words) : said.remove();
    return { wrong };
  }

  // ---- forms

  function collect(form) {
    const body = Object.create(null);
    for (const input of form.elements) {
      if (!input.name || input.disabled || input.tagName === "FIELDSET" || input.dataset.goalKind !== undefined) continue;
      if (input.type === "checkbox" && !input.checked) continue;
      let value = input.dataset.integer !== undefined ? parseInt(input.value, 10) : input.value.trim();
      if (input.dataset.true !== undefined) value = true;
      if (input.dataset.lines !== undefined) {
        body[input.name] = value.split("\n").map((line) => line.trim()).filter(Boolean); // none is an answer too
        continue;
      }
      const unchanged = input.tagName === "SELECT"
        ? Array.from(input.options).some((one) => one.defaultSelected && one.selected)
        : input.value === input.defaultValue;
      const prefilled = input.type !== "hidden" && unchanged &&
        (input.name.startsWith("design.") || form.dataset.changed !== undefined);
      if (value === "" || (prefilled && (input.tagName === "SELECT" || input.defaultValue !== ""))) continue;
      const dot = input.name.indexOf(".");
      if (dot < 0) body[input.name] = value;
      else {
        const role = input.name.slice(0, dot);
        body[role] = body[role] || Object.create(null);
        body[role][input.name.slice(dot + 1)] = value;
      }
    }
    if (form.dataset.changed !== undefined && body.context) {
      // a context is one thing: with one part corrected, the others go along
      for (const input of form.elements) {
        if (input.name.startsWith("context.") && input.value.trim()) body.context[input.name.slice(8)] = input.value.trim();
      }
    }
    const goal = form.querySelector("[data-goal]");
    if (goal && goalText(goal)) body.goal = goalText(goal);
    if (form.dataset.variables !== undefined) {
      for (const role of ["design", "context"]) body[role] = variables(form, role);
    }
    const lines = outcomes(form, body);
    if (lines.length) body.outcomes = lines;
    return body;
  }

  // A goal as records name it, cvar:0.1; nothing where it was left as it is.
  function goalText(field) {
    const kind = field.querySelector("[data-goal-kind]");
    const numbers = field.querySelector(`[data-goal-of="${CSS.escape(kind.value)}"]`);
    const inputs = numbers ? Array.from(numbers.querySelectorAll("input")) : [];
    const same = Array.from(kind.options).some((one) => one.defaultSelected && one.selected);
    if (same && inputs.every((input) => input.value === input.defaultValue)) return "";
    const per = numbers && numbers.dataset.perCent !== undefined ? 100 : 1;
    return [kind.value, inputs.map((input) => Number((number(input.value) / per).toPrecision(12))).join(",")].filter(Boolean).join(":");
  }

  // What each of several results is for, a line each, the main one first; none where there is one result.
  function outcomes(form, body) {
    const set = form.querySelector("[data-outcomes]");
    if (!set) return [];
    const lines = [];
    for (const row of set.querySelectorAll("[data-outcome]")) {
      const of = Object.fromEntries(Array.from(row.querySelectorAll("[data-of]"), (one) => [one.dataset.of, one.value.trim()]));
      if (!of.name) continue;
      const unit = of.unit ? `,unit=${of.unit}` : "";
      const limit = of.purpose === "upper" || of.purpose === "lower";
      const share = Number((number(of.share || "95") / 100).toPrecision(12));
      lines.push(limit ? `${of.name}=limit,${of.purpose}=${of.number.replace(",", ".")},probability=${share}${unit}` : `${of.name}=${of.purpose}${unit}`);
    }
    if (!lines.length || set.dataset.main === undefined && !form.querySelector("#outcome")) return lines;
    const main = set.dataset.main || `${body.outcome || "value"}=${body.direction || "maximize"}${body.unit ? `,unit=${body.unit}` : ""}`;
    return [main, ...lines];
  }

  function limits(row) {
    const purpose = row.querySelector('[data-of="purpose"]').value;
    for (const one of row.querySelectorAll(".of-limit")) one.hidden = purpose === "maximize" || purpose === "minimize";
  }

  function variables(form, role) {
    const found = [];
    for (const set of form.querySelectorAll(`[data-variable="${role}"]`)) {
      const part = {};
      for (const input of set.querySelectorAll("[data-part]")) {
        const value = input.type === "checkbox" ? input.checked : input.value.trim();
        if (value !== "" && value !== false) part[input.dataset.part] = value;
      }
      if (part.name) found.push(part);
    }
    return found;
  }

  function complain(form, words, field) {
    const place = form.querySelector(".form-said");
    place.textContent = words;
    place.hidden = !words;
    unmark(form);
    if (field) mark(field, words);
    else if (words) place.scrollIntoView({ block: "nearest" });
  }

  // ---- the field that an error is about

  // What people and the server call a field: its label, and its name or that of its variable.
  function namesOf(input) {
    const label = input.labels && input.labels[0] ? input.labels[0].firstChild.textContent.trim() : "";
    const set = input.closest(".variable");
    const variable = set ? set.querySelector('[data-part="name"]').value.trim() : "";
    const own = (input.name || "").replace(/^(design|context|outcomes|settings)\./, "");
    if (variable) return input.dataset.part === "low" || input.dataset.part === "choices" ? [variable] : [];
    return [label, own, own.replaceAll("_", " ")].filter((text) => text.length > 1);
  }

  function meant(form, words) {
    const said = words.toLowerCase();
    let found = null;
    let longest = 0;
    for (const input of form.elements) {
      if (!input.checkVisibility || !input.checkVisibility() || ["hidden", "checkbox", "submit", "button"].includes(input.type)) continue;
      for (const name of namesOf(input)) {
        const at = said.indexOf(name.toLowerCase());
        const whole = at >= 0 && !/[\p{L}\p{N}]/u.test(said[at - 1] || " ") && !/[\p{L}\p{N}]/u.test(said[at + name.length] || " ");
        if (whole && name.length > longest) [found, longest] = [input, name.length];
      }
    }
    return found;
  }

  function mark(input, words) {
    input.classList.add("marked");
    input.setAttribute("aria-invalid", "true");
    const said = document.createElement("span");
    said.className = "field-said error";
    said.textContent = words;
    (input.closest(".field") || input.parentNode).append(said);
    input.focus();
    input.scrollIntoView({ block: "center" });
  }

  function unmark(form) {
    for (const input of form.querySelectorAll(".marked")) {
      input.classList.remove("marked");
      input.removeAttribute("aria-invalid");
    }
    form.querySelectorAll(".field-said.error").forEach((one) => one.remove());
  }

  // What keeps the form from being sent, and where; nothing if nothing does.
  function ready(form) {
    const looks = Array.from(form.querySelectorAll("[data-number]"), (input) => [input, look(input)]);
    const wrong = looks.find(([, found]) => found.wrong);
    if (wrong) return ["A number cannot be read; write it as 1.7 or 1,7.", wrong[0]];
    if (form.dataset.variables !== undefined && !variables(form, "design").length) {
      return ["Add at least one setting: give it a name.", form.querySelector('[data-variable="design"] [data-part="name"]')];
    }
    const unmeasured = form.querySelector("#unmeasured");
    if (unmeasured && !unmeasured.checked) {
      const empty = Array.from(form.querySelectorAll("#conditions :is(input, select)")).find((input) => !input.value.trim());
      if (empty) return ["Fill in every condition, or say that they are not measured yet.", empty];
    }
    return ["", null];
  }

  // The server says what looks mistyped; true if there is nothing, or somebody said that it is right.
  async function sound(form) {
    const box = form.querySelector(".ask-again");
    if (!form.dataset.check || !box) return true;
    const answer = await edrbo.post(form.dataset.check, collect(form));
    const doubts = (answer.ok && answer.body.doubts) || [];
    const said = doubts.join("\n");
    const sure = box.querySelector(".sure");
    if (box.dataset.said !== said) sure.checked = false; // a yes was to other questions
    box.dataset.said = said;
    box.hidden = !doubts.length;
    box.querySelector(".doubts").replaceChildren(...doubts.map((words) => {
      const line = document.createElement("li");
      line.textContent = words;
      const meantAs = /did you mean ([-+\d.,eE]*\d)\?/.exec(words);
      const field = meantAs && meant(form, words);
      if (field) line.append(yes(form, field, meantAs[1]));
      return line;
    }));
    return !doubts.length || sure.checked;
  }

  // One tap puts in what was probably meant.
  function yes(form, field, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `Yes, ${text}`;
    button.addEventListener("click", () => {
      field.value = text;
      look(field);
      sound(form);
      field.focus();
    });
    return button;
  }

  async function send(form) {
    const [trouble, where] = ready(form);
    complain(form, trouble, where);
    if (trouble || form.dataset.sending) return;
    form.dataset.sending = "yes"; // a second tap finds this
    if (!(await sound(form))) {
      delete form.dataset.sending;
      complain(form, "Is this right? Say so above, or change it.");
      return form.querySelector(".ask-again").scrollIntoView({ block: "center" });
    }
    if (!form.dataset.key) form.dataset.key = edrbo.key();
    const body = collect(form);
    if (form.dataset.keyless === undefined) Object.assign(body, { key: form.dataset.key, by: edrbo.by() });
    const words = [form.dataset.words, body.value].filter(Boolean).join(": ");
    const answer = await edrbo.post(form.dataset.api, body);
    delete form.dataset.sending;
    if (answer.ok) {
      delete form.dataset.key;
      if (form.dataset.asks !== undefined) return asked(form);
      edrbo.say(`Stored: ${answer.body.words || answer.body.name || words}`, answer.body);
      location.href = form.dataset.after === "study" ? `/s/${answer.body.study}/` : form.dataset.after;
    } else if ((answer.status === 0 || answer.status >= 500) && form.dataset.queue !== undefined) {
      queue.add({ url: form.dataset.api, body, words, typed: Date.now() });
      form.dataset.queued = body.key; // the queue leaves the form when it has sent it
      delete form.dataset.key;
      const why = answer.body.title ? `This cannot be stored now: ${answer.body.title}.` : "The server does not answer.";
      complain(form, `${why} The entry is kept on this device and sent as soon as it can be.`);
      form.querySelectorAll("button").forEach((button) => { if (button.classList.contains("main")) button.disabled = true; });
    } else {
      const said = answer.status === 0 ? "The server does not answer; try again." : answer.body.title;
      const all = [said, answer.body.detail].filter(Boolean).join(" – ");
      complain(form, all, meant(form, all));
    }
  }

  // While a suggestion is worked out another tap would ask for one more.
  function quiet() {
    const button = document.getElementById("ask");
    if (button) button.disabled = Boolean(document.querySelector('#live .thinking[data-kind="ask"]'));
  }

  function asked(form) {
    form.reset();
    document.getElementById("ask").disabled = true;
    const live = document.getElementById("live");
    if (live && window.htmx) htmx.ajax("GET", live.getAttribute("hx-get"), { target: "#live", swap: "outerHTML" });
  }

  async function undo(button) {
    button.disabled = true;
    const study = document.body.dataset.study;
    const key = (button.dataset.key = button.dataset.key || edrbo.key());
    const which = button.dataset.undo === "table" ? { table: true } : { ref: button.dataset.undo };
    const body = { key, ...which, by: edrbo.by() };
    const answer = await edrbo.post(`/api/v1/studies/${study}/undo`, body);
    edrbo.say(answer.ok ? `Undone: ${answer.body.words}` : answer.body.title || "The server does not answer.");
    if (answer.ok) location.reload();
    else {
      button.disabled = false;
      showSaid();
    }
  }

  // ---- names

  function names() {
    const button = document.getElementById("who");
    const dialog = document.getElementById("name-dialog");
    const field = document.getElementById("name-field");
    const show = () => {
      button.textContent = edrbo.by() || "Who are you?";
      for (const one of document.querySelectorAll(".nameless")) one.hidden = Boolean(edrbo.by());
    };
    const ask = () => { field.value = edrbo.by() || ""; dialog.showModal(); };
    button.addEventListener("click", ask);
    for (const one of document.querySelectorAll("[data-who]")) one.addEventListener("click", ask);
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "keep") localStorage.setItem("edrbo-by", field.value.trim());
      show();
    });
    show();
  }

  function kinds(set) {
    const kind = set.querySelector('[data-part="kind"]');
    set.classList.toggle("choices", Boolean(kind && kind.value === "categorical"));
  }

  // ---- everything is listened to in one place, so that parts that come later are heard too

  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.api) return;
    event.preventDefault();
    send(event.target);
  });
  document.addEventListener("input", (event) => {
    const input = event.target;
    if (input.dataset.number !== undefined) look(input);
    if (input.form && input.form.dataset.check && input.dataset.number !== undefined) {
      clearTimeout(asking);
      asking = setTimeout(() => sound(input.form), 400);
    }
    if (input.dataset.slider !== undefined) {
      document.querySelector(`output[for="${input.id}"]`).textContent = Number(Number(input.value).toPrecision(3));
    }
  });
  document.addEventListener("change", (event) => {
    const input = event.target;
    if (input.dataset.submits !== undefined) input.form.submit();
    if (input.dataset.part === "kind") kinds(input.closest(".variable"));
    if (input.dataset.of === "purpose") limits(input.closest("[data-outcome]"));
    if (input.dataset.goalKind !== undefined) {
      for (const one of input.closest("[data-goal]").querySelectorAll("[data-goal-of]")) one.hidden = one.dataset.goalOf !== input.value;
    }
    if (input.form && input.form.dataset.pick) picked(input.form);
    if (input.dataset.clears) {
      for (const field of document.querySelectorAll(`#${input.dataset.clears} :is(input, select)`)) {
        field.disabled = input.checked;
        if (input.checked) field.value = "";
      }
    }
  });
  // Two runs are compared: a third tick takes the first away.
  let ticked = [];
  function picked(form) {
    const now = Array.from(form.querySelectorAll("input[name=run]:checked"), (input) => input.value);
    ticked = [...ticked.filter((run) => now.includes(run)), ...now.filter((run) => !ticked.includes(run))].slice(-2);
    tick();
  }
  function tick() {
    for (const input of document.querySelectorAll("[data-pick] input[name=run]")) input.checked = ticked.includes(input.value);
    const button = document.getElementById("compare");
    if (button) button.disabled = ticked.length !== 2;
  }

  document.addEventListener("htmx:afterSettle", () => {
    quiet();
    tick();
  });
  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-href]");
    if (row && !event.target.closest("a, input, button") && !String(getSelection())) location.href = row.dataset.href;
    const target = event.target.closest("button");
    if (!target) return;
    if (target.dataset.undo) undo(target);
    if (target.dataset.print !== undefined) print();
    if (target.dataset.fill) {
      const field = document.getElementById(target.dataset.fill);
      field.value = target.dataset.value;
      if (field.dataset.number !== undefined) look(field);
    }
    if (target.dataset.moreOutcome !== undefined) {
      const next = target.closest("[data-outcomes]").querySelector("[data-outcome][hidden]");
      if (next) {
        next.hidden = false;
        next.querySelector("input").focus();
      }
    }
    if (target.dataset.more) {
      const next = target.form.querySelector(`[data-variable="${target.dataset.more}"][hidden]`);
      if (next) {
        next.hidden = false;
        next.querySelector("input").focus();
      }
    }
  });
  // The value that no other site knows; and from a server that does not know us any more there is little to ask.
  document.addEventListener("htmx:configRequest", (event) => { event.detail.headers["X-Edrbo"] = edrbo.token().content; });
  document.addEventListener("htmx:beforeRequest", (event) => { if (edrbo.waits()) event.preventDefault(); });
  document.addEventListener("htmx:responseError", (event) => edrbo.answered(event.detail.xhr.status));
  document.addEventListener("htmx:sendError", () => edrbo.online(false));
  document.addEventListener("htmx:timeout", () => edrbo.online(false));
  document.addEventListener("htmx:afterOnLoad", (event) => {
    if (event.detail.xhr.status < 400) edrbo.answered(event.detail.xhr.status);
  });
  window.addEventListener("storage", () => queue.show());
  window.addEventListener("online", () => queue.send());

  names();
  document.querySelectorAll(".variable").forEach(kinds);
  document.querySelectorAll("[data-outcome]").forEach(limits);
  queue.show();
  showSaid();
  queue.send();
  setInterval(() => { if (queue.read().some((entry) => !entry.refused)) queue.send(); }, 3000);
})();
