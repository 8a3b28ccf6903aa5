import { inspect } from 'node:util';

/** Returns what a leak of a value looks like: the value itself, and its encodings. */
export function leakForms(value: string): string[] {
  const bytes = Buffer.from(value);
  const base64 = [0, 1, 2].map((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    // The first and the last characters depend on the neighbours.
    return shifted.slice(4, Math.floor(((offset + bytes.length) * 8) / 6));
  });
  const forms = [
    value,
    ...value.split('\n'),
    JSON.stringify(value).slice(1, -1),
    inspect(value).slice(1, -1),
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    encodeURIComponent(value),
    new URLSearchParams({ v: value }).toString().slice(2),
    // A cut value must not be readable either.
    value.slice(0, 400),
  ];
  return [...new Set(forms)];
}
