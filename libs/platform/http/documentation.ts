import helmet from '@fastify/helmet';
import scalar from '@scalar/fastify-api-reference';
import type { HttpApp } from './server-options.ts';

/**
 * What a browser may load for the reference page: this server, and nothing else. The policy is what
 * keeps the page working offline, whatever a later version of the page would like to fetch.
 */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'", "'unsafe-inline'"],
  styleSrc: ["'self'", "'unsafe-inline'"],
  imgSrc: ["'self'", 'data:', 'blob:'],
  fontSrc: ["'self'", 'data:'],
  connectSrc: ["'self'"],
  workerSrc: ["'self'", 'blob:'],
  baseUri: ["'self'"],
  frameAncestors: ["'none'"],
};

/**
 * The reference page at `/docs`, script and all from this process. helmet guards this page only: its
 * thirteen headers say things about documents, and cost a JSON answer as much as everything else
 * around it together.
 */
export async function registerDocumentation(app: HttpApp, title: string): Promise<void> {
  await app.register(async (scope) => {
    await scope.register(helmet, { contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY } });
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
        hideClientButton: true,
      },
    });
  });
}
