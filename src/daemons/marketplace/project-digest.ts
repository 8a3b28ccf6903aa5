import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { findFolders, sourceDigest } from '../../plugins/index.ts';

/** Returns a digest of the plugin folders of the project, by which operators see that nodes differ. */
export async function digestOfProject(projectDir: string, patterns: string[]): Promise<string> {
  const { folders } = await findFolders(projectDir, patterns);
  const digests = await Promise.all(
    folders.map(async (root) => `${basename(root)} ${await sourceDigest(root)}`),
  );
  return createHash('sha256').update(digests.toSorted().join('\n')).digest('base64url');
}
