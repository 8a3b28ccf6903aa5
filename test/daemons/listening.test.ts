import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { startTestDaemon } from '../support/daemon.ts';
import { echo, sampleDaemon } from '../support/sample-daemon.ts';

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((address) => address?.address === '::1');

test.skipIf(!hasIpv6)(
  'a service at "localhost" answers on 127.0.0.1 and ::1, until it is closed',
  async () => {
    const daemon = await startTestDaemon(sampleDaemon(echo({ method: 'POST', path: '/x' })), {
      listen: { host: 'localhost', port: 0 },
    });
    const urls = ['127.0.0.1', '[::1]'].map((host) => `http://${host}:${daemon.port}/health`);
    const statusOf = async (url: string): Promise<number> => (await fetch(url)).status;
    expect(await Promise.all(urls.map(statusOf))).toEqual([200, 200]);
    await daemon.close();
    for (const url of urls) await expect(fetch(url)).rejects.toThrow();
  },
);
