// Canvases that are sharp on every screen, and know which cell is under a finger.

export function sharp(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

export function spot(event, canvas) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// Draw now, and again when the place becomes wider or narrower.
export function fitted(place, draw) {
  let width = 0;
  const watch = new ResizeObserver(() => {
    const now = Math.floor(place.clientWidth);
    if (now && now !== width) {
      width = now;
      draw(now);
    }
  });
  watch.observe(place);
  return () => width && draw(width);
}

const tip = document.createElement("div");
tip.id = "tip";
tip.setAttribute("aria-hidden", "true");

export function hint(event, text) {
  if (!tip.isConnected) document.body.append(tip);
  tip.textContent = text || "";
  tip.hidden = !text;
  if (!text) return;
  const wide = tip.offsetWidth, side = 14;
  const left = event.clientX + side + wide > innerWidth ? event.clientX - side - wide : event.clientX + side;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.min(event.clientY + side, innerHeight - tip.offsetHeight - 6)}px`;
}
