const tip = document.getElementById("tip");
function show(event) {
  const text = event.target.dataset && event.target.dataset.tip;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 4)) + "px";
  tip.style.top = Math.max(4, event.clientY - box.height - 10) + "px";
}
document.addEventListener("pointermove", show);
document.addEventListener("pointerdown", show);
document.documentElement.dataset.ready = String(document.querySelectorAll("svg").length);
