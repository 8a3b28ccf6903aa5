import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../src/kit/files/paths.ts';
import { providersPage } from '../src/webhooks/providers/providers-page.ts';

await writeFile(join(packageRoot, 'docs/providers.md'), providersPage());
