import { expect, test } from 'vitest';
import { contentTypeFault, contentTypeOf } from '../../../src/webhooks/bodies/content-type.ts';
import { type BodyRules, parseBody } from '../../../src/webhooks/bodies/parse-body.ts';

function parse(rules: BodyRules, body: string | Buffer, headers: Record<string, string> = {}) {
  return parseBody(rules, { body: Buffer.from(body as string), headers, fileKey: String });
}

const EVENTS: BodyRules = { format: 'json', takesCloudEvents: true };

test('text and raw bodies are a string', async () => {
  expect(await parse({ format: 'text' }, 'é')).toEqual({ value: 'é', text: '"é"' });
  expect(await parse({ format: 'text' }, Buffer.from([0xff]))).toEqual({ fault: 'it is not UTF-8' });
  expect(await parse({ format: 'raw' }, Buffer.from([0xff]))).toEqual({ value: '/w==', text: '"/w=="' });
});

test('a form in either encoding is parsed by its content type', async () => {
  const multipart = '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n';
  const type = { 'content-type': 'multipart/form-data; boundary=b' };
  expect((await parse({ format: 'form' }, multipart, type)).value).toEqual({ a: '1' });
  expect(
    (await parse({ format: 'multipart' }, 'a=1', { 'content-type': 'application/x-www-form-urlencoded' }))
      .value,
  ).toEqual({ a: '1' });
});

test('a CloudEvent in binary mode has the form of structured mode', async () => {
  const ce = {
    'ce-specversion': '1.0',
    'ce-id': '1',
    'ce-type': 't',
    'ce-source': '/s',
    'ce-subject': 'Euro%20%E2%82%AC',
  };
  const event = { specversion: '1.0', id: '1', type: 't', source: '/s', subject: 'Euro €' };
  const json = { ...ce, 'content-type': 'application/json' };
  expect((await parse(EVENTS, '{"a":1}', json)).value).toEqual({
    ...event,
    datacontenttype: 'application/json',
    data: { a: 1 },
  });
  expect((await parse(EVENTS, 'hi', { ...ce, 'content-type': 'text/plain' })).value).toMatchObject({
    data: 'hi',
  });
  expect(
    (await parse(EVENTS, Buffer.from([255]), { ...ce, 'content-type': 'image/png' })).value,
  ).toMatchObject({
    data_base64: '/w==',
  });
  expect((await parse(EVENTS, '', ce)).value).toEqual(event);
  expect((await parse(EVENTS, '{', json)).fault).toMatch(/^its data is not valid JSON/);
  expect((await parse(EVENTS, '1', { ...json, 'ce-bad': '%ff' })).fault).toMatch(/ce-bad/);
  const structured = { ...event, data: 1 };
  expect(
    (await parse(EVENTS, JSON.stringify(structured), { 'content-type': 'application/cloudevents+json' }))
      .value,
  ).toEqual(structured);
});

test('content types are compared without parameters, and other charsets than UTF-8 are refused', () => {
  const fault = (header: string | undefined, accepted: string[], format: 'json' | 'form' | 'text' = 'form') =>
    contentTypeFault(contentTypeOf(header), accepted, format);
  const form = ['application/x-www-form-urlencoded'];
  expect(fault('Application/X-WWW-Form-Urlencoded; charset=UTF-8', form)).toBeUndefined();
  expect(fault('application/json', form)).toBe(
    'This webhook does not accept application/json. Send one of: application/x-www-form-urlencoded.',
  );
  expect(fault(undefined, form)).toMatch(/^Send a Content-Type header/);
  expect(fault('no type', form)).toMatch(/^Send a Content-Type header/);
  expect(fault('application/x-www-form-urlencoded; charset=utf-7', form)).toBe(
    'The charset utf-7 is not supported. Send UTF-8.',
  );
  expect(fault('application/vnd.api+json', ['application/*+json'], 'json')).toBeUndefined();
  expect(fault('text/csv', ['text/*'], 'text')).toBeUndefined();
  expect(fault('image/png', ['*/*'], 'text')).toBeUndefined();
});
