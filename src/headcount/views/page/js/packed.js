// Masks and arrays out of the texts that carry them.

export function mask(hex, heads) {
  const kept = new Uint8Array(heads);
  for (let place = 0; place < heads; place++) {
    kept[place] = (parseInt(hex[place >> 2], 16) >> (3 - (place & 3))) & 1;
  }
  return kept;
}

const KINDS = { u1: Uint8Array, u2: Uint16Array, f4: Float32Array };

export async function unpack(text, kind) {
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new KINDS[kind](await new Response(stream).arrayBuffer());
}

// A square matrix from the packed half above its diagonal; unpacked once.
export function square(matrix) {
  if (!matrix.square) {
    matrix.square = unpack(matrix.values.data, matrix.values.kind).then((steps) => {
      const n = matrix.heads, full = new Float32Array(n * n);
      let place = 0;
      for (let row = 0; row < n; row++) {
        for (let column = row + 1; column < n; column++, place++) {
          full[row * n + column] = full[column * n + row] =
            matrix.values.low + steps[place] * matrix.values.scale;
        }
      }
      return full;
    });
  }
  return matrix.square;
}
