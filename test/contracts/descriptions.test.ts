import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CONFIG_DESCRIPTIONS } from '../../src/contracts/descriptions/config.ts';
import { type Descriptions, walkSchema } from '../../src/contracts/descriptions/describe.ts';
import { MANIFEST_DESCRIPTIONS } from '../../src/contracts/descriptions/manifest.ts';
import { configurationPage, manifestPage } from '../../src/contracts/descriptions/reference-page.ts';
import { configFileSchema } from '../../src/kit/config/config-file.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { manifestSchema } from '../../src/plugins/manifest-schema.ts';

const SCHEMAS: Array<[name: string, schema: object, descriptions: Descriptions]> = [
  ['svc.config.json', configFileSchema(), CONFIG_DESCRIPTIONS],
  ['svc.plugin.json', manifestSchema(), MANIFEST_DESCRIPTIONS],
];

test.each(SCHEMAS)('every key of %s has a description', (_, schema) => {
  const missing: string[] = [];
  let keys = 0;
  walkSchema(schema, (path, node) => {
    keys++;
    // Keys of a profile are references to the base.
    if (node.description === undefined && !('$ref' in node)) missing.push(path);
  });
  expect(missing).toEqual([]);
  expect(keys).toBeGreaterThan(100);
});

test.each(SCHEMAS)('no description of %s belongs to a removed key', (_, schema, descriptions) => {
  const paths = new Set<string>();
  walkSchema(schema, (path) => paths.add(path));
  expect(Object.keys(descriptions).filter((path) => !paths.has(path))).toEqual([]);
});

test.each([
  ['docs/configuration.md', () => configurationPage(configFileSchema())],
  ['docs/manifest.md', () => manifestPage(manifestSchema())],
])('%s is current; `npm run generate` writes it', async (file, page) => {
  expect(await readFile(join(packageRoot, file), 'utf8')).toBe(page());
});
