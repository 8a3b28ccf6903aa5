/** Writes the table of commands from their files; part of `npm run generate`. A test fails if it is outdated. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../src/kit/files/paths.ts';
import { readCommands, TABLES_FOLDER, tableSource } from './command-table.ts';

mkdirSync(TABLES_FOLDER, { recursive: true });
for (const [group, commands] of await readCommands())
  writeFileSync(join(TABLES_FOLDER, `${group.toLowerCase()}.ts`), tableSource(group, commands));
execFileSync(join(packageRoot, 'node_modules/.bin/biome'), ['format', '--write', TABLES_FOLDER]);
