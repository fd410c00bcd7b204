import { createServer } from 'node:net';
import { codeOf } from '#libs/kernel/faults.ts';
import { StartRefusal } from '#libs/platform/lifecycle/index.ts';

/**
 * Checks before anything is started whether the address can be listened on. Another process may take it between the
 * check and the start: then the role that listens gets the error.
 *
 * @param command the command that started this process, for the message
 * @throws StartRefusal
 */
export async function ensureListenable(host: string, port: number, command = 'npm start'): Promise<void> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  } catch (error) {
    throw listenRefusal(error, host, port, command) ?? error;
  }
  await new Promise((resolve) => server.close(resolve));
}

/** The refusal for an error of `listen`; undefined for any other error. */
export function listenRefusal(
  error: unknown,
  host: string,
  port: number,
  command = 'npm start',
): StartRefusal | undefined {
  const code = codeOf(error);
  switch (code) {
    case 'EADDRINUSE':
      return new StartRefusal(`port ${port} of ${host} is in use; choose another: PORT=${nextPort(port)} ${command}`);
    case 'EACCES':
      return new StartRefusal(
        `port ${port} may not be opened by this user; choose one above 1023: PORT=8080 ${command}`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new StartRefusal(`HOST ${host} is not an address of this machine; try HOST=127.0.0.1 or HOST=0.0.0.0`);
    default:
      return undefined;
  }
}

function nextPort(port: number): number {
  return port < 65_535 ? port + 1 : port - 1;
}
