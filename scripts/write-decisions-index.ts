/** Writes docs/decisions/README.md from the records; part of `npm run generate`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DECISIONS, decisionsIndex } from './decisions-index.ts';

writeFileSync(join(DECISIONS, 'README.md'), decisionsIndex());
