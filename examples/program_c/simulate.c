/* A simulation as a program: reads {"x": [a, b]} on stdin, answers {"value": ..., "gradient": [..., ...]} on stdout.
 *
 * The six-hump camel function stands for a solver: six minima, two of them global, with -1.0316 at (0.0898, -0.7126) and
 * at the mirrored point. Whatever goes to stderr is kept, and shown if the program fails.
 */
#include <stdio.h>

int main(void)
{
    double a, b;
    if (scanf(" { \"x\" : [ %lf , %lf ] }", &a, &b) != 2) {
        fprintf(stderr, "expected {\"x\": [a, b]} on stdin\n");
        return 1;
    }
    double a2 = a * a, b2 = b * b;
    double value = (4.0 - 2.1 * a2 + a2 * a2 / 3.0) * a2 + a * b + 4.0 * (b2 - 1.0) * b2;
    double by_a = 8.0 * a - 8.4 * a2 * a + 2.0 * a2 * a2 * a + b;
    double by_b = a - 8.0 * b + 16.0 * b2 * b;
    /* 17 digits carry a double without loss. */
    printf("{\"value\": %.17g, \"gradient\": [%.17g, %.17g]}\n", value, by_a, by_b);
    return 0;
}
