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
  let workbook = null; // an .xlsx file in base64, in place of the text

  const say = (words) => {
    const place = form.querySelector(".form-said");
    place.textContent = words;
    place.hidden = !words;
  };

  async function send(confirm) {
    const body = { key, columns, confirm, by: edrbo.by(), ...(workbook ? { workbook } : { text: area.value }) };
    const answer = await edrbo.post(form.dataset.table, body);
    if (answer.ok) return answer.status === 202 ? follow(answer.body.job) : answer.body;
    say(answer.status ? [answer.body.title, answer.body.detail].filter(Boolean).join(" – ") : "The server does not answer; nothing was stored.");
    return null;
  }

  // A long table is stored while the page waits, and says how far that is.
  async function follow(job) {
    const address = form.dataset.table.replace(/import$/, `job?job=${encodeURIComponent(job)}`);
    for (;;) {
      await new Promise((done) => setTimeout(done, 400));
      let found;
      try {
        found = await (await fetch(address)).json();
      } catch {
        say("The server does not answer; the table may be stored all the same. Store it again to be sure: what is known is passed over.");
        return null;
      }
      if (found.status === "done") return found.result;
      if (found.status !== "waiting" && found.status !== "running") {
        say([found.problem?.title, found.problem?.detail].filter(Boolean).join(" – "));
        return null;
      }
      const bar = document.getElementById("storing");
      bar.hidden = false;
      if (found.of) Object.assign(bar, { max: found.of, value: found.done });
    }
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
    const words = { "-": "left out", "+": "added to the note" };
    for (const target of ["-", "+", ...found.targets]) {
      const option = cell("option", words[target] || target);
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
          made.title = words;
        }
        line.append(made);
      });
      tbody.append(line);
    });
    table.replaceChildren(thead, tbody);
    const more = found.total > found.rows.length ? ` The first ${found.rows.length} of ${found.total} rows are shown.` : "";
    const unread = `${found.wrong} ${found.wrong === 1 ? "row" : "rows"} cannot be read; nothing can be stored before that is mended.`;
    const said = found.wrong ? unread : found.problem || found.words;
    document.getElementById("counts").textContent = said + more;
    list("wrong-rows", found.errors.map((error) => `${error.place}: ${error.words}`));
    list("doubtful-rows", found.doubts.map((doubt) => `row ${doubt.line}: ${doubt.words}`));
    confirmed.disabled = !found.ready;
  }

  function list(id, lines) {
    const place = document.getElementById(id);
    place.hidden = !lines.length;
    place.querySelector("ul").replaceChildren(...lines.map((words) => cell("li", words)));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  confirmed.addEventListener("click", async () => {
    confirmed.disabled = true;
    const stored = await send(true);
    if (!stored) return look();
    edrbo.say(`Stored: ${stored.words}`, { ref: "table" });
    location.href = form.dataset.after;
  });
  const anew = () => {
    columns = Object.create(null);
    key = edrbo.key();
    workbook = null;
  };
  area.addEventListener("input", anew);
  const base64 = (file) =>
    new Promise((done) => {
      const reader = new FileReader();
      reader.addEventListener("load", () => done(reader.result.split(",")[1] || ""));
      reader.readAsDataURL(file);
    });
  const read = async (file) => {
    if (!file) return;
    if (file.size > 3000000) return say("The file is larger than 3 MB.");
    anew();
    if (/\.xlsx?$|\.xlsm$/i.test(file.name)) {
      area.value = "";
      area.placeholder = file.name;
      workbook = await base64(file);
    } else area.value = await file.text();
    look();
  };
  document.getElementById("file").addEventListener("change", (event) => read(event.target.files[0]));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  });
})();
