/** Writes docs/cli.md; part of `npm run generate`. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { referencePage } from '../src/cli/reference-page.ts';
import { packageRoot } from '../src/kit/files/paths.ts';

await writeFile(join(packageRoot, 'docs/cli.md'), await referencePage());
