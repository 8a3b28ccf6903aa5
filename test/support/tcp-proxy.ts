import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface TcpAddress {
  host: string;
  port: number;
}

/** A TCP proxy whose connections a test can cut. */
export class TcpProxy {
  /** Where new connections lead. */
  target: TcpAddress;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #isCut = false;

  private constructor(target: TcpAddress) {
    this.target = target;
    this.#server = createServer((client) => this.#join(client));
  }

  static async open(target: TcpAddress): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends all connections and refuses new ones, as a dead machine does. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Connections work again. */
  mend(): void {
    this.#isCut = false;
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket): void {
    if (this.#isCut) return void client.destroy();
    const target = connect(this.target);
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('data', (bytes) => to.write(bytes));
      from.on('error', () => {});
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }
}
