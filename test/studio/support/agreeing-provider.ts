import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** OAuth 2 provider that agrees at once. */
export async function startProvider(): Promise<{ url: string; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://provider');
    if (url.pathname === '/authorize') {
      const back = new URL(url.searchParams.get('redirect_uri')!);
      back.searchParams.set('code', 'the-code');
      back.searchParams.set('state', url.searchParams.get('state')!);
      response.writeHead(302, { location: back.href }).end();
      return;
    }
    request.resume();
    const token = { access_token: 'secret-access-token', token_type: 'Bearer', expires_in: 3600 };
    const body = url.pathname === '/token' ? { ...token, refresh_token: 'secret-refresh-token' } : {};
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
