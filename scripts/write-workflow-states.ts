import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { statesPage } from '../src/daemons/workflow/domain/states-page.ts';
import { packageRoot } from '../src/kit/files/paths.ts';

await writeFile(join(packageRoot, 'docs/workflow-states.md'), statesPage());
