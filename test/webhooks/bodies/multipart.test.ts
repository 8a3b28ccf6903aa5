import busboy from 'busboy';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { contentTypeOf } from '../../../src/webhooks/bodies/content-type.ts';
import { parseMultipart } from '../../../src/webhooks/bodies/multipart.ts';

interface Part {
  name: string;
  filename?: string;
  type?: string;
  data: Uint8Array;
}

/** Fields and files of a body, in order. */
type Read = Array<{ name: string; filename: string | null; data: string }>;

const BOUNDARY = '----svcBoundary7MA4';
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

function encode(parts: readonly Part[], boundary = BOUNDARY): Buffer {
  const quoted = (text: string) => text.replaceAll('"', '%22');
  const chunks = parts.flatMap(({ name, filename, type, data }) => [
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"` +
        `${filename === undefined ? '' : `; filename="${quoted(filename)}"`}` +
        `${type === undefined ? '' : `\r\ncontent-type: ${type}`}\r\n\r\n`,
    ),
    Buffer.from(data),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]);
}

const parse = (body: Buffer, type = TYPE) =>
  parseMultipart(body, contentTypeOf(type)?.boundary, { fileKey: (index) => `k/${index}` });

/** Reads the payload back to the order of `Read`, by name. */
function fieldsOf({ value, files = [] }: Awaited<ReturnType<typeof parse>>): Map<string, string[]> {
  const fields = new Map<string, string[]>();
  for (const [name, each] of Object.entries(value as Record<string, unknown>)) {
    const all = (Array.isArray(each) ? each : [each]) as Array<string | { filename: string; key: string }>;
    fields.set(
      name,
      all.map((one) => {
        if (typeof one === 'string') return `field ${Buffer.from(one).toString('base64')}`;
        const file = files[Number(one.key.slice(2))]!;
        return `file ${one.filename} ${file.data.toString('base64')}`;
      }),
    );
  }
  return fields;
}

function byName(read: Read): Map<string, string[]> {
  const fields = new Map<string, string[]>();
  for (const { name, filename, data } of read)
    fields.set(name, [
      ...(fields.get(name) ?? []),
      filename === null ? `field ${data}` : `file ${filename} ${data}`,
    ]);
  return fields;
}

async function readByUndici(body: Buffer): Promise<Read> {
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': TYPE } }).formData();
  return Promise.all(
    [...form].map(async ([name, value]) => {
      const isText = typeof value === 'string';
      const bytes = isText ? Buffer.from(value) : Buffer.from(await value.arrayBuffer());
      return { name, filename: isText ? null : value.name, data: bytes.toString('base64') };
    }),
  );
}

function readByBusboy(body: Buffer): Promise<Read> {
  return new Promise((resolve, reject) => {
    const read: Array<Promise<Read[number]>> = [];
    const parser = busboy({
      headers: { 'content-type': TYPE },
      preservePath: true,
      defParamCharset: 'utf8',
    });
    parser.on('field', (name, value) =>
      read.push(Promise.resolve({ name, filename: null, data: Buffer.from(value).toString('base64') })),
    );
    parser.on('file', (name, stream, { filename }) => {
      const collect = async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of stream) chunks.push(chunk as Buffer);
        return { name, filename: filename ?? '', data: Buffer.concat(chunks).toString('base64') };
      };
      read.push(collect());
    });
    parser.on('error', reject);
    parser.on('close', () => Promise.all(read).then(resolve, reject));
    parser.end(body);
  });
}

const plain = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter((text) => text.isWellFormed() && !/[\p{Cc}"%\\\uFFFD]/u.test(text) && text.trim() === text);
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({
    name: plain,
    data: fc.string({ unit: 'grapheme' }).map((text) => Buffer.from(text.toWellFormed())),
  }),
  fc.record({
    name: plain,
    filename: plain,
    type: fc.constantFrom('application/octet-stream', 'image/png', 'text/plain'),
    data: fc.uint8Array({ maxLength: 200 }),
  }),
);

test('a body has the same fields and files as undici and busboy read', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 8 }), async (parts) => {
      const body = encode(parts);
      const parsed = await parse(body);
      expect(parsed.fault).toBeUndefined();
      expect(fieldsOf(parsed)).toEqual(byName(await readByUndici(body)));
      expect(fieldsOf(parsed)).toEqual(byName(await readByBusboy(body)));
    }),
    { numRuns: 300 },
  );
});

test('a damaged body is refused, or read as by one of the other parsers', async () => {
  const damage = fc.record({
    at: fc.nat(),
    remove: fc.nat({ max: 6 }),
    insert: fc.constantFrom('', '\r', '\n', '--', BOUNDARY),
  });
  const seen = { refused: 0, agreed: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { minLength: 1, maxLength: 4 }),
      damage,
      async (parts, { at, remove, insert }) => {
        const body = encode(parts);
        const index = at % body.length;
        const broken = Buffer.concat([
          body.subarray(0, index),
          Buffer.from(insert),
          body.subarray(index + remove),
        ]);
        const parsed = await parse(broken);
        if (parsed.fault !== undefined) {
          seen.refused++;
          return;
        }
        const others = await Promise.allSettled([readByUndici(broken), readByBusboy(broken)]);
        const accepted = others.flatMap((each) => (each.status === 'fulfilled' ? [byName(each.value)] : []));
        if (accepted.length < 2) return;
        seen.agreed++;
        // A filename of a field, or a part that one parser skips, may differ. Each value must be one that a parser has seen.
        for (const [name, values] of fieldsOf(parsed))
          for (const value of values) {
            const known = accepted.flatMap((fields) => fields.get(name) ?? []);
            expect(known).toContain(value);
          }
      },
    ),
    { numRuns: 500 },
  );
  expect(seen.refused).toBeGreaterThan(0);
  expect(seen.agreed).toBeGreaterThan(0);
});

const one = (name: string, data = 'v') => ({ name, data: Buffer.from(data) });

test('10,000 parts, and missing or wrong boundaries, are refused', async () => {
  expect((await parse(encode(Array.from({ length: 10_000 }, () => one('a'))))).fault).toBe(
    'it has more than 1000 fields',
  );
  const body = encode([one('a')]);
  expect((await parse(body.subarray(0, -6))).fault).toBe('Unexpected end of multipart data');
  expect((await parse(Buffer.alloc(0))).fault).toBe('Unexpected end of multipart data');
  expect((await parse(body, 'multipart/form-data; boundary=other')).fault).toBe(
    'Unexpected end of multipart data',
  );
  for (const type of [
    'multipart/form-data',
    'multipart/form-data; boundary=""',
    `multipart/form-data; boundary=${'b'.repeat(71)}`,
  ])
    expect((await parse(body, type)).fault).toBe('its Content-Type has no valid boundary');
  // The first boundary counts, as in the standard.
  expect((await parse(body, `${TYPE}; boundary=other`)).value).toEqual({ a: 'v' });
});

test('nested multipart stays data, and a value with a delimiter is refused', async () => {
  const inner = `--inner\r\ncontent-disposition: form-data; name="b"\r\n\r\n1\r\n--inner--`;
  expect((await parse(encode([one('a', inner)]))).value).toEqual({ a: inner });
  expect((await parse(encode([one('a', `--${BOUNDARY}x`)]))).fault).toBe('it has a malformed part');
  expect((await parse(encode([one('a', `1\r\n--${BOUNDARY}x`)]))).fault).toBe('it has a malformed part');
});

test('line breaks, NUL and invalid UTF-8 in names are refused', async () => {
  const withName = (name: string | Buffer) =>
    Buffer.concat([
      Buffer.from(`--${BOUNDARY}\r\ncontent-disposition: form-data; name="`),
      Buffer.from(name as string),
      Buffer.from(`"\r\n\r\nv\r\n--${BOUNDARY}--\r\n`),
    ]);
  const injected = await parse(withName('a"\r\nx-injected: 1\r\ncontent-disposition: form-data; name="b'));
  expect(Object.keys(injected.value as object)).toEqual(['a']);
  expect((await parse(withName('a\0b'))).fault).toBe('a part has a control character in its header');
  expect((await parse(withName(Buffer.from([0x61, 0xff])))).fault).toBe('the header of a part is not UTF-8');
  expect((await parse(encode([{ name: 'a', data: Buffer.from([0xff]) }]))).fault).toBe(
    'a field is not UTF-8',
  );
});

test('files are bounded, keep their names, and refer to their objects', async () => {
  const file = { name: 'f', filename: '../../etc/passwd', type: 'text/plain', data: Buffer.from('x') };
  const { value, files } = await parse(encode([file, one('__proto__'), file]));
  const reference = { filename: '../../etc/passwd', contentType: 'text/plain', bytes: 1 };
  expect(Object.entries(value as object)).toEqual([
    [
      'f',
      [
        { ...reference, key: 'k/0' },
        { ...reference, key: 'k/1' },
      ],
    ],
    ['__proto__', 'v'],
  ]);
  expect(files).toHaveLength(2);
  expect((await parse(encode(Array.from({ length: 101 }, () => file)))).fault).toBe(
    'it has more than 100 files',
  );
});
