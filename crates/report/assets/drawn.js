// Figures without choices: they are drawn again from what the page has when its width changes.

const DRAWN = [...document.querySelectorAll(".picture")].map((picture) => [picture, [...picture.childNodes].map((node) => node.cloneNode(true))]);

function redraw() {
  for (const [picture, nodes] of DRAWN) {
    picture.replaceChildren(...nodes.map((node) => node.cloneNode(true)));
    fitPicture(picture);
  }
  reachable();
}

redraw();
followWidth(redraw);
