import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { Busboy } from '@fastify/busboy';
import { withJsonField } from './json.ts';
import {
  BodyFault,
  FieldMap,
  MAX_FIELDS,
  type ParsedBody,
  payloadFrom,
  type UploadedFile,
} from './parsed-body.ts';

/** Maximum number of files in one body. */
const MAX_FILES = 100;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_FILENAME_BYTES = 1024;
const MAX_TYPE_BYTES = 256;
/** Boundaries that RFC 2046 permits, without the space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=?]{1,70}$/;

/** A file in the value that handlers get. */
export interface FileReference {
  filename: string;
  contentType: string;
  bytes: number;
  /** Key of the object in `ctx.storage`. */
  key: string;
}

/** Returns the object key of a file. `index` is the position of the file in its body. */
export type FileKey = (index: number) => string;

interface Part {
  name: string;
  filename: string | undefined;
  contentType: string;
  data: Buffer;
}

/**
 * Parses a `multipart/form-data` body. A part without a filename is a field, whose value is a string. A part with a
 * filename is a file, whose value is a FileReference.
 */
export async function parseMultipart(
  body: Buffer,
  boundary: string | undefined,
  { jsonField, fileKey }: { jsonField?: string | undefined; fileKey: FileKey },
): Promise<ParsedBody> {
  if (boundary === undefined || !BOUNDARY.test(boundary))
    return { fault: 'its Content-Type has no valid boundary' };
  try {
    const files: UploadedFile[] = [];
    const fields = new FieldMap<string | FileReference>();
    const parts = await readParts(body, boundary);
    if (parts.length !== partsIn(body, boundary)) throw new BodyFault('it has a malformed part');
    for (const part of parts) {
      if (part.filename === undefined) fields.add(part.name, textOf(part.data));
      else {
        const { name: field, filename, contentType, data } = part;
        const key = fileKey(files.length);
        files.push({ field, filename, contentType, data });
        if (files.length > MAX_FILES) throw new BodyFault(`it has more than ${MAX_FILES} files`);
        fields.add(field, { filename, contentType, bytes: data.length, key });
      }
    }
    return payloadFrom(withJsonField(fields.values, jsonField), files);
  } catch (error) {
    if (error instanceof BodyFault) return { fault: error.message };
    throw error;
  }
}

function readParts(body: Buffer, boundary: string): Promise<Part[]> {
  return new Promise((resolve, reject) => {
    const reading: Promise<Part>[] = [];
    const fail = (fault: string): void => reject(new BodyFault(fault));
    const parser = new Busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
      // Each part is read as bytes, because the parser would replace invalid UTF-8 of a field.
      isPartAFile: () => true,
      preservePath: true,
      limits: { parts: MAX_FIELDS + 1, headerSize: MAX_HEADER_BYTES, headerPairs: 32 },
    });
    parser.on('file', (name, stream, filename, _encoding, contentType) => {
      const part = readPart({ name, filename, contentType }, stream);
      part.catch(() => {});
      reading.push(part);
    });
    parser.on('partsLimit', () => fail(`it has more than ${MAX_FIELDS} fields`));
    parser.on('error', (error) => fail((error as Error).message));
    parser.on('finish', () => Promise.all(reading).then(resolve, reject));
    parser.end(body);
  });
}

/**
 * Returns the number of parts by counting the delimiters before the closing one. The parser skips malformed parts, so
 * that fields would be lost without an error.
 */
function partsIn(body: Buffer, boundary: string): number {
  const delimiter = `--${boundary}`;
  let at = body.subarray(0, delimiter.length).equals(Buffer.from(delimiter)) ? 0 : next(body, delimiter, 0);
  let parts = 0;
  while (at !== -1 && body.toString('latin1', at + delimiter.length, at + delimiter.length + 2) !== '--') {
    parts++;
    at = next(body, delimiter, at);
  }
  return parts;
}

function next(body: Buffer, delimiter: string, from: number): number {
  const at = body.indexOf(`\r\n${delimiter}`, from, 'latin1');
  return at === -1 ? -1 : at + 2;
}

interface PartHead {
  name: string | undefined;
  filename: string | undefined;
  contentType: string;
}

async function readPart({ name, filename, contentType }: PartHead, stream: Readable): Promise<Part> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of stream) chunks.push(chunk as Buffer);
  } catch (error) {
    throw new BodyFault((error as Error).message);
  }
  if (name === undefined) throw new BodyFault('a part has no name');
  for (const text of [name, filename ?? '', contentType]) requireText(text);
  if (Buffer.byteLength(filename ?? '') > MAX_FILENAME_BYTES)
    throw new BodyFault(`a filename is longer than ${MAX_FILENAME_BYTES} bytes`);
  return { name, filename, contentType: contentType.slice(0, MAX_TYPE_BYTES), data: Buffer.concat(chunks) };
}

/** Throws BodyFault for a control character or invalid UTF-8, which the parser has replaced. */
function requireText(text: string): void {
  for (const char of text) {
    const code = char.codePointAt(0)!;
    if (code < 0x20 || code === 0x7f) throw new BodyFault('a part has a control character in its header');
    if (code === 0xfffd) throw new BodyFault('the header of a part is not UTF-8');
  }
}

function textOf(data: Buffer): string {
  if (!isUtf8(data)) throw new BodyFault('a field is not UTF-8');
  return data.toString('utf8');
}
