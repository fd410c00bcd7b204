import scalar from '@scalar/fastify-api-reference';
import type { HttpApp } from './server-options.ts';

/**
 * What a browser may load for the reference page: this server, and nothing else. The policy is what
 * keeps the page working offline, whatever a later version of the page would like to fetch.
 */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** The reference page at `/docs`, script and all from this process. */
export async function registerDocumentation(app: HttpApp, title: string): Promise<void> {
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply) => {
      reply.header('content-security-policy', CONTENT_POLICY);
    });
    await scope.register(scalar, {
      routePrefix: '/docs',
      configuration: {
        url: '/openapi.json',
        pageTitle: title,
        withDefaultFonts: false,
        telemetry: false,
        agent: { disabled: true },
        mcp: { disabled: true },
        showDeveloperTools: 'never',
      },
    });
  });
}
