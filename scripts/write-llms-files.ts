/** Writes llms.txt and llms-full.txt; the last part of `npm run generate`, because other parts write pages. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../src/kit/files/paths.ts';
import { llmsFull, llmsIndex } from './llms-files.ts';

writeFileSync(join(packageRoot, 'llms.txt'), llmsIndex());
writeFileSync(join(packageRoot, 'llms-full.txt'), llmsFull());
