/** Writes `config/default.json`, `schemas/` and the reference pages generated from schemas: `npm run generate`. A test fails if they are outdated. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationPage, manifestPage } from '../src/contracts/descriptions/reference-page.ts';
import { workflowSchema } from '../src/daemons/workflow/workflow-schema.ts';
import { asJsonFile, asSchemaFile, configFileSchema, defaultConfig } from '../src/kit/config/config-file.ts';
import { packageRoot } from '../src/kit/files/paths.ts';
import { manifestSchema } from '../src/plugins/manifest-schema.ts';

const folder = join(packageRoot, 'schemas');
mkdirSync(folder, { recursive: true });
writeFileSync(join(packageRoot, 'config/default.json'), asJsonFile(defaultConfig()));
writeFileSync(join(folder, 'svc.schema.json'), asSchemaFile(configFileSchema()));
writeFileSync(join(folder, 'plugin.schema.json'), asSchemaFile(manifestSchema()));
writeFileSync(join(folder, 'workflow.schema.json'), asSchemaFile(workflowSchema()));
writeFileSync(join(packageRoot, 'docs/configuration.md'), configurationPage(configFileSchema()));
writeFileSync(join(packageRoot, 'docs/manifest.md'), manifestPage(manifestSchema()));
