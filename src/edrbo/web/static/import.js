// A table is read by the server, shown as it was understood, and stored when that is confirmed.
"use strict";
(() => {
  const form = document.getElementById("import");
  if (!form) return;
  const area = document.getElementById("table");
  const table = document.getElementById("preview-table");
  const confirmed = document.getElementById("confirm");
  let columns = Object.create(null);
  let key = edrbo.key();

  const say = (words) => {
    const place = form.querySelector(".form-said");
    place.textContent = words;
    place.hidden = !words;
  };

  async function send(confirm) {
    const body = { key, text: area.value, columns, confirm, by: edrbo.by() };
    const answer = await edrbo.post(form.dataset.table, body);
    if (answer.ok) return answer.body;
    say(answer.status ? [answer.body.error, answer.body.hint].filter(Boolean).join(" – ") : "The server does not answer; nothing was stored.");
    return null;
  }

  async function look() {
    say("");
    const found = await send(false);
    document.getElementById("understood").hidden = !found;
    if (found) show(found);
  }

  function cell(kind, text) {
    const made = document.createElement(kind);
    made.textContent = text;
    return made;
  }

  function choice(found, k) {
    const head = cell("th", "");
    head.scope = "col";
    const select = document.createElement("select");
    select.setAttribute("aria-label", `What the column ${found.headings[k]} holds`);
    for (const target of ["-", ...found.targets]) {
      const option = cell("option", target === "-" ? "left out" : target);
      option.value = target;
      option.selected = target === found.mapping[k];
      select.append(option);
    }
    select.addEventListener("change", () => {
      columns[String(k)] = select.value;
      look();
    });
    head.append(cell("div", found.headings[k]), select);
    return head;
  }

  function show(found) {
    const wrong = new Map(found.errors.map((error) => [`${error.row},${error.column}`, error.words]));
    const head = document.createElement("tr");
    head.append(...found.headings.map((_, k) => choice(found, k)));
    const thead = document.createElement("thead");
    thead.append(head);
    const tbody = document.createElement("tbody");
    found.rows.forEach((row, i) => {
      const line = document.createElement("tr");
      row.forEach((text, k) => {
        const made = cell("td", text);
        const words = wrong.get(`${i},${k}`);
        if (words) {
          made.className = "wrong";
          made.append(document.createElement("br"), cell("small", words));
        }
        line.append(made);
      });
      tbody.append(line);
    });
    table.replaceChildren(thead, tbody);
    const counts = Object.entries(found.counts).map(([status, count]) => `${count} ${status}`);
    if (found.known) counts.push(`${found.known} known already`);
    const more = found.total > found.rows.length ? ` The first ${found.rows.length} of ${found.total} rows are shown.` : "";
    const head2 = found.errors.length ? `${found.errors.length} ${found.errors.length === 1 ? "cell" : "cells"} cannot be read.` : found.problem || counts.join(", ") || "Nothing new.";
    document.getElementById("counts").textContent = head2 + more;
    confirmed.disabled = !found.ready;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  confirmed.addEventListener("click", async () => {
    confirmed.disabled = true;
    const stored = await send(true);
    if (!stored) return look();
    edrbo.say(`Stored: ${stored.words}`);
    location.href = form.dataset.after;
  });
  area.addEventListener("input", () => { columns = Object.create(null); key = edrbo.key(); });
  const read = async (file) => {
    if (!file) return;
    if (file.size > 3000000) return say("The file is larger than 3 MB.");
    area.value = await file.text();
    columns = Object.create(null);
    look();
  };
  document.getElementById("file").addEventListener("change", (event) => read(event.target.files[0]));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  });
})();
