// Formulas are typeset by MathJax, which `make docs` puts beside this file; pages without formulas do not load it.
if (document.querySelector(".arithmatex")) {
  window.MathJax = {
    tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
    options: { ignoreHtmlClass: ".*", processHtmlClass: "arithmatex", enableMenu: false },
    svg: { fontCache: "global" },
  };
  const script = document.createElement("script");
  script.src = new URL("mathjax.js", document.currentScript.src).href;
  document.head.append(script);
}
