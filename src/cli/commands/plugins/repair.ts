import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors.ts';
import { version } from '../../../kit/paths.ts';
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
  /** The npm archive of the platform that was written. */
  archive: string;
  /** What `package.json` names. */
  dependency: string;
  version: string;
}

/** @spec docs/plugins.md "In a clone, and in CI" */
export const repair = defineCommand({
  name: 'plugins repair',
  summary: "Write the archive of svc-platform that a plugin's npm install needs",
  example: 'svc plugins repair ./plugins/orders',
  args: z.object({ folder: z.string().default('.').describe("the plugin's folder; default: this one") }),
  positionals: ['folder'],
  async run({ folder: given }, context) {
    const folder = resolve(context.cwd, given);
    if (!existsSync(join(folder, 'package.json')))
      throw new PlatformError('INVALID_MANIFEST', `${folder} has no package.json, so it is no plugin.`, {
        details: { folder, hint: 'Name the folder of a plugin: svc plugins repair <folder>' },
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
      `  ${archive} holds svc-platform ${of}; commit it with package.json.`,
      '  Colleagues run npm install, then npm test.',
    ].join('\n'),
});
