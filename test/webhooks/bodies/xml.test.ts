import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseXml } from '../../../src/webhooks/bodies/xml.ts';

const xml = (text: string | Buffer) => parseXml(Buffer.from(text as string));

test('elements become strings or objects, with attributes, text and arrays', () => {
  const { value } = xml(
    '<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="urn:s"><Id n="1">a &amp; &#98;</Id><Id>c</Id><E/><C><![CDATA[<x>]]></C></s:Envelope>',
  );
  expect(value).toEqual({
    's:Envelope': { '@xmlns:s': 'urn:s', Id: [{ '@n': '1', '#text': 'a & b' }, 'c'], E: '', C: '<x>' },
  });
});

test('any text survives in elements and attributes', () => {
  const escaped = (text: string) =>
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('"', '&quot;')
      .replaceAll(']]>', ']]&gt;');
  const text = fc
    .string({ unit: 'grapheme', minLength: 1 })
    .filter((each) => each.isWellFormed() && !/[\p{Cc}\uFFFE\uFFFF]/u.test(each) && each.trim() !== '');
  fc.assert(
    fc.property(text, (each) => {
      expect(xml(`<a b="${escaped(each)}">${escaped(each)}</a>`).value).toEqual({
        a: { '@b': each, '#text': each },
      });
    }),
  );
});

test('no entity, DTD or external reference is processed', () => {
  const laughs = `<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "${'&a;'.repeat(10)}">]><l>&b;</l>`;
  expect(xml(laughs).fault).toBe('it contains a DTD');
  expect(xml('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>').fault).toBe('it contains a DTD');
  expect(xml('<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1/"> %p;]><a/>').fault).toBe(
    'it contains a DTD',
  );
  expect(xml('<a>&b;</a>').fault).toBe('Invalid character entity');
  expect(xml('<a>&toString;</a>').fault).toBe('Invalid character entity');
});

test('broken, deep, wide and differently encoded documents are refused', () => {
  for (const text of ['', 'text', '<a>', '<a></b>', '<a/><b/>', '<a b=1/>', '<a>&#xD800;</a>'])
    expect(xml(text).fault, text).toBeTypeOf('string');
  expect(xml(`${'<a>'.repeat(256)}${'</a>'.repeat(256)}`).fault).toBe('it nests deeper than 255 elements');
  expect(xml(`${'<a>'.repeat(255)}${'</a>'.repeat(255)}`).fault).toBeUndefined();
  expect(xml(`<r>${'<a/>'.repeat(100_000)}</r>`).fault).toBe('it has more than 100000 elements');
  expect(xml('<?xml version="1.0" encoding="UTF-7"?><a/>').fault).toBe(
    'its encoding is UTF-7 instead of UTF-8',
  );
  expect(xml(Buffer.from('<a>\xe9</a>', 'latin1')).fault).toBe('it is not UTF-8');
  expect(xml(Buffer.from('\ufeff<a>x</a>', 'utf16le')).fault).toBeTypeOf('string');
});

test('names of prototype members are ordinary elements, and the first of two attributes counts', () => {
  expect(xml('<a b="1" b="2"/>').value).toEqual({ a: { '@b': '1' } });
  const { value } = xml('<__proto__ constructor="1"><toString/></__proto__>') as { value: object };
  expect(JSON.stringify(value)).toBe('{"__proto__":{"@constructor":"1","toString":""}}');
});
