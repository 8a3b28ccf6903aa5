import { createServer } from 'node:http';
import { Pool } from 'undici';

/** Minimal proxy on node:http and undici: no authentication, log or limits, headers unchanged. */
const upstream = process.argv[2]!;
const pool = new Pool(upstream, { connections: 128 });

createServer((request, response) => {
  const withBody = request.headers['content-length'] !== undefined;
  pool.dispatch(
    {
      path: request.url!,
      method: request.method as 'GET',
      headers: request.rawHeaders.filter(
        (_, index, all) => !/^(?:host|connection)$/i.test(all[index - (index % 2)]!),
      ),
      body: withBody ? request : null,
    },
    {
      onRequestStart() {},
      onResponseStart(_controller, status, headers) {
        response.writeHead(status, headers as Record<string, string>);
      },
      onResponseData(_controller, chunk) {
        response.write(chunk);
      },
      onResponseEnd() {
        response.end();
      },
      onResponseError() {
        response.destroy();
      },
    },
  );
}).listen(0, '127.0.0.1', function (this: import('node:http').Server) {
  console.log((this.address() as import('node:net').AddressInfo).port);
});
