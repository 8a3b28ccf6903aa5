import { request } from 'node:http';
import type { RequestPlace } from '../../../src/contracts/index.ts';

/** A request as it goes over the wire. Headers may repeat. */
export interface WireRequest {
  url: string;
  headers: ReadonlyArray<readonly [name: string, value: string]>;
  body: Buffer;
}

/** Sends a POST and resolves with its status and text. */
export function send({ url, headers, body }: WireRequest): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname, search } = new URL(url);
    const sent = [...headers, ['host', `${hostname}:${port}`], ['content-length', String(body.length)]];
    const outgoing = request(
      { host: hostname, port, path: pathname + search, method: 'POST', headers: sent.flat() },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const isForm = ({ headers }: WireRequest) =>
  headers.some(
    ([name, value]) => name.toLowerCase() === 'content-type' && /x-www-form-urlencoded/.test(value),
  );

/** Adds a field to a JSON object or a form, and a character to any other body. */
export function withChangedBody(wire: WireRequest): WireRequest {
  const text = wire.body.toString('latin1');
  const json = text.trimEnd();
  const changed = isForm(wire)
    ? `${text}${text === '' ? '' : '&'}changed=1`
    : json.endsWith('}')
      ? `${json.slice(0, -1)}${json.endsWith('{}') ? '' : ','}"changed":1}`
      : `${text} `;
  return { ...wire, body: Buffer.from(changed, 'latin1') };
}

export function withChangedQuery(wire: WireRequest): WireRequest {
  return { ...wire, url: `${wire.url}${wire.url.includes('?') ? '&' : '?'}changed=1` };
}

/** Replaces the texts at a place. No text removes the place, and two texts repeat it. */
export function withTexts(
  wire: WireRequest,
  place: RequestPlace,
  change: (text: string) => string[],
): WireRequest {
  if (place.header !== undefined) return withHeader(wire, place.header, change);
  if (place.query !== undefined) {
    const url = new URL(wire.url);
    const values = url.searchParams.getAll(place.query).flatMap(change);
    url.searchParams.delete(place.query);
    for (const value of values) url.searchParams.append(place.query, value);
    return { ...wire, url: url.href };
  }
  return {
    ...wire,
    body: isForm(wire) ? formWith(wire, place.field!, change) : jsonWith(wire, place.field!, change),
  };
}

function withHeader(wire: WireRequest, wanted: string, change: (text: string) => string[]): WireRequest {
  const headers = wire.headers.flatMap(([name, value]) =>
    name.toLowerCase() === wanted.toLowerCase()
      ? change(value).map((text) => [name, text] as const)
      : [[name, value] as const],
  );
  return { ...wire, headers };
}

function formWith({ body }: WireRequest, field: string, change: (text: string) => string[]): Buffer {
  const form = new URLSearchParams(body.toString());
  const values = form.getAll(field).flatMap(change);
  form.delete(field);
  for (const value of values) form.append(field, value);
  return Buffer.from(form.toString());
}

/** Changes the member in the text, because a parsed object could not repeat it. */
function jsonWith({ body }: WireRequest, field: string, change: (text: string) => string[]): Buffer {
  const name = JSON.stringify(field.split('.').at(-1));
  const member = new RegExp(`${name}\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")\\s*(,?)`);
  const changed = body.toString().replace(member, (_all, text: string, comma: string) => {
    const members = change(JSON.parse(text) as string).map((one) => `${name}:${JSON.stringify(one)}`);
    return members.length === 0 ? '' : members.join(',') + comma;
  });
  return Buffer.from(changed.replace(/,\s*\}/g, '}'));
}
