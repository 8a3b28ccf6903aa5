import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { version } from '../../../kit/files/paths.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { linkPlatform } from '../../vendor/link-platform.ts';
import {
  pointAtArchive,
  vendoredDependency,
  vendorFolderOf,
  vendorPlatform,
} from '../../vendor/vendored-platform.ts';

interface Repaired {
  folder: string;
  /** Path of the npm archive of the platform. */
  archive: string;
  /** Dependency entry in `package.json`, such as `file:../../vendor/…`. */
  dependency: string;
  version: string;
}

/** @spec docs/plugins.md "In a clone, and in CI" */
export const repair = defineCommand({
  name: 'plugins repair',
  summary: 'Write the svc-platform archive required by npm install in a plugin',
  example: 'svc plugins repair ./plugins/orders',
  args: z.object({ folder: z.string().default('.').describe('plugin folder; default: current folder') }),
  positionals: ['folder'],
  async run({ folder: given }, context) {
    const folder = resolve(context.cwd, given);
    if (!existsSync(join(folder, 'package.json')))
      throw new PlatformError('INVALID_MANIFEST', `${folder} is not a plugin: it has no package.json.`, {
        details: { folder, hint: 'Pass the folder of a plugin: svc plugins repair <folder>' },
      });
    const vendor = vendorFolderOf(folder);
    const archive = await vendorPlatform(vendor, { replace: true });
    await pointAtArchive(folder, vendor);
    await linkPlatform(folder);
    const dependency = Object.values(vendoredDependency(folder, vendor))[0]!;
    return ok<Repaired>({ folder, archive, dependency, version });
  },
  text: ({ folder, archive, version: of }: Repaired, style) =>
    [
      `${style.green('repaired')} ${folder}`,
      `  ${archive} contains svc-platform ${of}. Commit it with package.json.`,
      '  Then npm install and npm test work in every clone.',
    ].join('\n'),
});
