import { readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { getNodeStatus, NodeService } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { Admins } from '../domain/identity/admins.ts';

/** Content of the supervisor's run file that the status shows. */
const RunFile = z.object({ services: z.array(NodeService) });

/** @spec docs/studio.md "Overview" */
export function nodeStatusRoutes(http: Http, { admins, dataDir }: { admins: Admins; dataDir: string }): void {
  mount(http, getNodeStatus, { auth: 'caller' }, async ({ caller }) => {
    admins.require(caller);
    const { bavail, blocks, bsize } = await statfs(dataDir);
    return {
      disk: { freeBytes: bavail * bsize, totalBytes: blocks * bsize },
      services: await servicesOf(dataDir),
    };
  });
}

/** Returns no services if there is no supervisor, or one of an earlier version. */
async function servicesOf(dataDir: string): Promise<NodeService[]> {
  try {
    return RunFile.parse(JSON.parse(await readFile(join(dataDir, 'run', 'supervisor.json'), 'utf8')))
      .services;
  } catch {
    return [];
  }
}
