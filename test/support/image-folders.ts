import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const FOLDERS = ['usr', 'tmp', 'proc', 'sys', 'dev', 'etc', 'run', 'project', 'opt/svc', 'var/lib/svc'];

/** Makes the folders of a stand-in image, which gets its programs from volumes of this machine. */
export function makeImageFolders(root: string, more: readonly string[] = []): void {
  for (const folder of [...FOLDERS, ...more]) mkdirSync(join(root, folder), { recursive: true });
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) symlinkSync(`usr/${name}`, join(root, name));
  for (const file of ['passwd', 'group', 'ld.so.cache', 'nsswitch.conf'])
    copyFileSync(`/etc/${file}`, join(root, 'etc', file));
}
