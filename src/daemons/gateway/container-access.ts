import type { ExecutionRequest } from '../../contracts/index.ts';
import type { ContainerAccess } from '../../plugins/index.ts';
import type { ContainerSockets } from './container-sockets.ts';
import type { ContainerCredentials } from './domain/hosts/container-credentials.ts';

export interface ContainerAccessDeps {
  credentials: ContainerCredentials;
  sockets: ContainerSockets;
}

/** Creates the credentials and the gateway socket for the container of one execution. */
export async function issueContainerAccess(
  { credentials, sockets }: ContainerAccessDeps,
  request: ExecutionRequest,
): Promise<ContainerAccess> {
  const { token, internalSecret, end } = await credentials.issue(request);
  const mayDispatch = request.permissions.platform?.dispatch === true;
  const env = { SVC_TOKEN: token, ...(mayDispatch ? { GATEWAY_INTERNAL_SECRET: internalSecret } : {}) };
  const socket = await sockets.open(request, token).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return {
    env,
    socket: socket.path,
    async end() {
      socket.close();
      await end();
    },
  };
}
