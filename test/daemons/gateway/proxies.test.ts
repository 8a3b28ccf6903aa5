import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import { tempDir } from '../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { connectRaw, registerTestHost } from '../../support/host-agent.ts';
import { freePort } from '../../support/ports.ts';
import { details, secretOf, startSenders } from '../../support/webhook-senders.ts';

const execCurl = promisify(execFile);
const PAGE = readFileSync(join(packageRoot, 'docs/proxies.md'), 'utf8');

/** The file that the page shows under this name. */
function shown(name: string): string {
  const [, text] = new RegExp(`<!-- file: ${name} -->\\n\\n\`\`\`\\w+\\n([\\s\\S]*?)^\`\`\``, 'm').exec(
    PAGE,
  )!;
  return text!;
}

/** `text` with each part replaced; every part must be there. */
function replaced(text: string, parts: Array<[part: string, by: string]>): string {
  return parts.reduce((all, [part, by]) => {
    expect(all).toContain(part);
    return all.replace(part, by);
  }, text);
}

interface Proxy {
  program: string;
  probe: string[];
  start(folder: string, port: number, upstream: string): Promise<string[]>;
}

const nginx: Proxy = {
  program: 'nginx',
  probe: ['-v'],
  async start(folder, port, upstream) {
    const certificate = [`${folder}/cert.pem`, `${folder}/key.pem`] as const;
    const subject = ['-subj', '/CN=svc.example.com', '-days', '1', '-nodes'];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', certificate[1], '-out', certificate[0], ...subject],
      { stdio: 'ignore' },
    );
    const site = replaced(shown('nginx.conf'), [
      ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
      ['/etc/letsencrypt/live/svc.example.com/fullchain.pem', certificate[0]],
      ['/etc/letsencrypt/live/svc.example.com/privkey.pem', certificate[1]],
      ['127.0.0.1:4000', upstream],
    ]);
    const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (kind) => `${kind}_temp_path ${folder}/${kind};`,
    );
    const config = `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events {} http { access_log off; ${temp.join(' ')} ${site} }`;
    await writeFile(`${folder}/nginx.conf`, config);
    return ['-p', folder, '-c', `${folder}/nginx.conf`];
  },
};

const caddy: Proxy = {
  program: 'caddy',
  probe: ['version'],
  async start(folder, port, upstream) {
    const site = replaced(shown('Caddyfile'), [
      ['svc.example.com {', `https://svc.example.com:${port} {\n  bind 127.0.0.1\n  tls internal`],
      ['127.0.0.1:4000', upstream],
    ]);
    const own = '{\n  admin off\n  auto_https disable_redirects\n  skip_install_trust\n}\n';
    await writeFile(`${folder}/Caddyfile`, own + site);
    return ['run', '--adapter', 'caddyfile', '--config', `${folder}/Caddyfile`];
  },
};

/** Asks by the public name, past the certificate that only this test knows; '' where nothing answers. */
async function curl(port: number, path: string, ...args: string[]): Promise<string> {
  const url = `https://svc.example.com:${port}${path}`;
  const resolve = ['--resolve', `svc.example.com:${port}:127.0.0.1`];
  const { stdout } = await execCurl('curl', ['-sk', ...resolve, ...args, url]).catch(() => ({ stdout: '' }));
  return stdout;
}

describe.each([nginx, caddy])('behind $program, configured as docs/proxies.md shows', (proxy) => {
  const isMissing = spawnSync(proxy.program, proxy.probe).error ?? spawnSync('curl', ['--version']).error;
  if (isMissing)
    console.warn(`${proxy.program} or curl is missing (Debian: apt-get install): its test is skipped.`);

  test.skipIf(isMissing !== undefined)(
    'deliveries have the address of their sender, agents connect, /internal/ is hidden',
    async () => {
      const gateway = await startSenders({
        config: { gateway: { publicUrl: 'https://svc.example.com', trustedProxies: ['loopback'] } },
      });
      const [folder, port] = [await tempDir(), await freePort()];
      await mkdir(join(folder, 'home'));
      const args = await proxy.start(folder, port, new URL(gateway.url).host);
      const env = { PATH: process.env.PATH, HOME: join(folder, 'home'), XDG_DATA_HOME: join(folder, 'home') };
      const child = spawn(proxy.program, args, { stdio: 'ignore', env });
      const ended = new Promise((resolve) => child.once('exit', resolve));
      onTestFinished(async () => {
        child.kill();
        await ended;
      });
      await expect.poll(() => curl(port, '/health'), { interval: 100 }).toContain('"status"');

      const secret = await secretOf(gateway, 'sync');
      const head = await curl(
        port,
        '/webhooks/senders/sync',
        ...['-D', '-', '-H', 'x-svc-namespace: default', '-H', `x-token: ${secret}`],
        ...['-H', 'content-type: application/json', '-d', '{"id":"p1"}', '--interface', '127.0.0.2'],
      );
      expect(head).toMatch(/^HTTP\/[\d.]+ 200/);
      const webhookId = /x-webhook-id: (\S+)/i.exec(head)![1]!;
      expect(await details(gateway, webhookId)).toMatchObject({ source: '127.0.0.2' });

      expect(
        await curl(port, '/internal/dispatch', '-X', 'POST', '-o', '/dev/null', '-w', '%{http_code}'),
      ).toBe('404');
      expect(await curl(port, '/metrics', '-o', '/dev/null', '-w', '%{http_code}')).toBe('404');

      const host = await registerTestHost(gateway, ADMIN_TOKEN);
      const name = 'svc.example.com';
      const encrypted = connectTls({ port, host: '127.0.0.1', servername: name, rejectUnauthorized: false });
      const agent = connectRaw({ url: `http://${name}:${port}` }, await host.token(), host, encrypted);
      expect((await agent.hello()).sessionId).toBeTruthy();
    },
  );
});
