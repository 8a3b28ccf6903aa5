/** Writes the generated files of `config/`: `npm run generate`. A test fails when they are out of date. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asJsonFile, configFileSchema, defaultConfig } from '../src/kit/config/files.ts';
import { packageRoot } from '../src/kit/paths.ts';
import { manifestSchema } from '../src/plugins/manifest-schema.ts';

const folder = join(packageRoot, 'config');
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'svc.schema.json'), asJsonFile(configFileSchema()));
writeFileSync(join(folder, 'default.json'), asJsonFile(defaultConfig()));
writeFileSync(join(folder, 'plugin.schema.json'), asJsonFile(manifestSchema()));
