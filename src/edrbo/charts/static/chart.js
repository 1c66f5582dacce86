// The numbers of a chart while a mouse is over them and after a tap, the run behind a dot, and a chart as large as the screen.
"use strict";
(() => {
  const tip = document.getElementById("tip");
  const runs = document.body.dataset.runs; // where a run is found: "/s/coating/run/", or "#run-" on a report

  function say(event, held) {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    const top = document.querySelector("dialog[open]") || document.body; // what is open lies above all else
    if (tip.parentNode !== top) top.append(tip);
    tip.hidden = !target;
    tip.classList.toggle("held", Boolean(target && held));
    if (!target) return;
    tip.textContent = target.dataset.tip;
    if (held && runs !== undefined && target.dataset.run !== undefined) {
      const link = document.createElement("a");
      link.href = runs + target.dataset.run;
      link.textContent = `Open run ${target.dataset.run}`;
      tip.append(link);
    }
    const box = tip.getBoundingClientRect();
    const above = event.clientY - box.height - 12;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 4))}px`;
    tip.style.top = `${above > 4 ? above : event.clientY + 18}px`;
  }

  function open(run) {
    document.querySelectorAll("dialog[open]").forEach((one) => one.close());
    tip.hidden = true;
    location.href = runs + run;
  }

  const onTip = (event) => event.target instanceof Element && event.target.closest("#tip");
  document.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch" && !onTip(event) && !tip.classList.contains("held")) say(event, false);
  });
  document.addEventListener("click", (event) => {
    if (onTip(event)) return;
    const target = event.target instanceof Element ? event.target.closest("[data-run]") : null;
    // a mouse has seen the numbers already; a finger sees them first, with a link to the run
    if (target && runs !== undefined && event.pointerType === "mouse" && !panned) open(target.dataset.run);
    else say(event, event.pointerType !== "mouse");
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  document.addEventListener("scroll", () => { tip.hidden = true; tip.classList.remove("held"); }, { passive: true });

  // ---- as large as the screen, and closer

  let panned = false;
  const whole = (svg) => svg.dataset.whole.split(" ").map(Number);

  function zoom(svg, factor, x = 0.5, y = 0.5) {
    const [, , fullWide, fullHigh] = whole(svg);
    const [left, top, wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
    const scale = Math.min(Math.max(wide / factor, fullWide / 12), fullWide) / wide;
    show(svg, left + wide * (1 - scale) * x, top + high * (1 - scale) * y, wide * scale, fullHigh * ((wide * scale) / fullWide));
  }

  function show(svg, left, top, wide, high) {
    const [, , fullWide, fullHigh] = whole(svg);
    const held = (value, most) => Math.max(0, Math.min(value, most));
    svg.setAttribute("viewBox", [held(left, fullWide - wide), held(top, fullHigh - high), wide, high].join(" "));
  }

  function enlarge(figure) {
    const dialog = document.createElement("dialog");
    dialog.className = "zoomed";
    dialog.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
    const copy = figure.cloneNode(true);
    const svg = Array.from(copy.querySelectorAll(":scope > svg"))[getComputedStyle(figure.querySelector(".narrow")).display === "none" ? 0 : copy.querySelectorAll(":scope > svg").length - 1];
    svg.dataset.whole = svg.getAttribute("viewBox");
    const bar = document.createElement("div");
    bar.className = "zoom-bar";
    const actions = { "−": () => zoom(svg, 1 / 1.5), "+": () => zoom(svg, 1.5), Close: () => dialog.close() };
    const names = { "−": "Zoom out", "+": "Zoom in", Close: "Close" };
    for (const [text, action] of Object.entries(actions)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", names[text]);
      button.addEventListener("click", action);
      bar.append(button);
    }
    dialog.append(copy, bar);
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(svg, event.deltaY < 0 ? 1.2 : 1 / 1.2, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    }, { passive: false });
    fingers(svg);
    dialog.addEventListener("close", () => {
      document.body.append(tip);
      tip.hidden = true;
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  // One finger or the mouse moves the picture, two fingers bring it closer.
  function fingers(svg) {
    const down = new Map();
    svg.addEventListener("pointerdown", (event) => {
      down.set(event.pointerId, event);
      panned = false;
    });
    svg.addEventListener("pointermove", (event) => {
      const before = down.get(event.pointerId);
      if (!before) return;
      const [left, top, wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
      const unit = wide / svg.getBoundingClientRect().width;
      if (down.size === 2) {
        const other = [...down.values()].find((one) => one.pointerId !== event.pointerId);
        const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
        zoom(svg, apart(event) / apart(before));
      } else if (Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) > 2) {
        show(svg, left - (event.clientX - before.clientX) * unit, top - (event.clientY - before.clientY) * unit, wide, high);
      } else return;
      panned = true;
      down.set(event.pointerId, event);
    });
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
      svg.addEventListener(name, (event) => down.delete(event.pointerId));
    }
  }

  function furnish(root) {
    for (const figure of root.querySelectorAll("figure.chart")) {
      if (figure.querySelector(".enlarge")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "enlarge";
      button.setAttribute("aria-label", `Enlarge: ${figure.querySelector("figcaption").textContent}`);
      button.innerHTML = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5"/></svg>';
      button.addEventListener("click", () => enlarge(figure));
      figure.append(button);
    }
  }

  furnish(document);
  document.addEventListener("htmx:afterSettle", () => furnish(document));
  document.documentElement.dataset.ready = String(document.querySelectorAll("figure.chart").length);
})();
